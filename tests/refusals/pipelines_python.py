"""What the functions and transforms of pipelines refuse when they are called from Python."""

from tests.refusals.refusal import raised
from tests.refusals.scenes import LINES, MODEL, dataset, holding, lines, together

BUILD = {
    "tokeniser='x'": (
        "UserError: unknown flag --tokeniser: did you mean --tokenizer? python -m pipelines.wudao"
        " --help lists every flag"
    ),
    "titel='never'": "UserError: unknown flag --titel: did you mean --title?…",
    "tokenizer_type='x'": "UserError: unknown flag --tokenizer_type: here --tokenizer …",
    "frobnicate=1": (
        "UserError: unknown flag --frobnicate. Beam's Python SDK does not have it either; what"
        " only the runner knows goes into runner_flags=…"
    ),
    "checkpointing_interval=1": (
        "UserError: unknown flag --checkpointing_interval. Beam's Python SDK does not have it"
        " either; what only the runner knows goes into runner_flags=…"
    ),
    "dedup='fuzzy'": (
        "UserError: --dedup fuzzy: give one of none, exact, minhash. python -m pipelines.wudao"
        " --help lists every flag"
    ),
    "validation=0.5": (
        "UserError: --validation 0.5 holds out more than 5 % of the documents; give at most 0.05"
    ),
    "seed=-1": (
        "UserError: --seed: '-1' is not a whole number from 0 on, as in 300, 20k, 100M or 2G."
        " python -m pipelines.wudao --help lists every flag"
    ),
    "input='/nowhere'": (
        "UserError: --tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or"
        " hf:tokenizer.json. To train one on this text: python -m pipelines.train_tokenizer --input"
        " /nowhere --vocab-size 50000 --output tokenizer.model"
    ),
    "input=['in', 'other'], tokenizer='hf:x.json'": (
        "UserError: hf:x.json: there is no file x.json. No tokenizer yet? python -m"
        " pipelines.train_tokenizer --help shows how to train one."
    ),
    "input={'a': 'in', 'b': 'in'}, tokenizer='hf:x.json'": (
        "UserError: hf:x.json: there is no file x.json. No tokenizer yet? python -m"
        " pipelines.train_tokenizer --help shows how to train one."
    ),
    "watch=True": (
        "UserError: a watch never returns: run it as a command, python -m pipelines.wudao --watch"
        " (docs/growing.md); append=True adds what is new and returns"
    ),
    "part='1/2'": (
        "UserError: part maps a share and makes no dataset: that is for the command on each machine"
        " (docs/large.md); part='merge' can be called"
    ),
    "part='3/2'": (
        "UserError: --part: '3/2' is no share of at most 1000 (2/4 is the second of four), and not"
        " 'merge'. python -m pipelines.wudao --help lists every flag"
    ),
    "filter='__main__:no_ads'": (
        "UserError: a corpus or filter of your own cannot be in the script or notebook that is"
        " running (__main__): worker processes import it by name. Put it into a file of its own"
        " beside it, such as notes.py, and name that module"
    ),
    "filter=lambda batch: None": (
        "UserError: filter: <lambda> has no name in the module row by which worker processes could"
        " find it: define it with def or class, at the top of a module"
    ),
    "filter=['rules']": (
        "UserError: --filter rules: no installed package offers a filter of that name (none is"
        " installed). Write [AFTER=]MODULE:NAME[?OPTION=VALUE&…], as in quality=my_rules:no_ads"
    ),
    "parallelism='many'": (
        "UserError: --parallelism: 'many' is not a whole number. beam --help lists every flag"
    ),
    "runner='FlinkRunner', flink_master='localhost:1'": (
        "UserError: --flink_master localhost:1 does not answer (…refused…). It should be the REST"
        " address of Flink's JobManager (HOST:PORT): start it, or give the address where it runs."
        " Nothing was started; what earlier runs finished is kept"
    ),
    "runner='Zork'": (
        "UserError: --runner Zork: give one of …PrismRunner…, or MODULE.CLASS of your own"
    ),
    "keep_dropped='yes'": (
        "UserError: keep_dropped='yes' is neither True nor False: give one of the two"
    ),
    "keep_dropped=1": "UserError: keep_dropped=1 is neither True nor False: give one of the two",
    "seed=[1, 2]": "UserError: seed takes one value, not several: [1, 2]",
    "seed={1}": (
        "UserError: seed is given a set, {1}: it takes text, a number or a path, or what --help"
        " says of its flag as text"
    ),
    "seed={'a': 1}": "UserError: seed takes one value, not several: {'a': 1}",
    "languages=['zh,en', 'ja']": (
        "UserError: languages: 'zh,en' holds a comma, at which --languages parts its values: give"
        " each of them as one of the list"
    ),
    "languages=[]": "UserError: --languages names no language; give for example zh,en, or all",
    "output=b'out'": (
        "UserError: output is given a bytes, b'out': it takes text, a number or a path, or what"
        " --help says of its flag as text"
    ),
    "tokenizer=object": (
        'UserError: --tokenizer "builtins:object": write sentencepiece:PATH, tiktoken:NAME or'
        " tiktoken:PATH, hf:PATH or hf:OWNER/NAME. No tokenizer yet? python -m"
        " pipelines.train_tokenizer --help shows how to train one."
    ),
    "append=True, overwrite=True": (
        "UserError: a dataset is either replaced (--overwrite) or grows: leave one out"
    ),
    "rehash=True": "UserError: --rehash and --allow-changed say how to --append: give that as well",
    "quality='gofer'": (
        'UserError: "gofer" is no quality profile: did you mean gopher? There are none, c4,'
        " c4@datatrove, c4@fineweb, c4@paper, fineweb, fineweb2-zh,"
        " fineweb2-zh@datatrove, fineweb2-zh@sentences, fineweb@code, fineweb@paper, glm, gopher,"
        " gopher-repetition, gopher-repetition@datatrove, gopher-repetition@paper,"
        " gopher@datatrove, gopher@paper; one of your own is written MODULE:NAME."
    ),
    "quality='glm', threshold='glm.min_words=1'": (
        'UserError: "glm.min_words=1": glm has no threshold "min_words": did you mean min_chars?'
        " There are min_chars."
    ),
    "plan=True, append=True": (
        "UserError: --plan estimates whole runs: leave --append, --every-tokens and --watch out"
    ),
}
"""Keywords of pipelines.build for wudao."""

CORPORA = {
    "'wuda'": (
        "UserError: there is no corpus 'wuda': did you mean wudao? Give one of wudao, pile,"
        " fineweb, text, zhihu, zhidao, baike, cc_news, openwebtext, or the name of a module of"
        " your own that has a Recipe called RECIPE and can be imported from here"
    ),
    "'zzzzzz'": (
        "UserError: there is no corpus 'zzzzzz': give one of wudao, pile, fineweb, text, zhihu,"
        " zhidao, baike, cc_news, openwebtext, or the name of a module of your own that has a"
        " Recipe called RECIPE and can be imported from here"
    ),
    "'nothing.of_that_name'": (
        "UserError: there is no corpus 'nothing.of_that_name': give one of wudao, pile, fineweb,"
        " text, zhihu, zhidao, baike, cc_news, openwebtext, or the name of a module of your own"
        " that has a Recipe called RECIPE and can be imported from here"
    ),
    "'__main__'": (
        "UserError: a corpus or filter of your own cannot be in the script or notebook that is"
        " running (__main__): worker processes import it by name. Put it into a file of its own"
        " beside it, such as notes.py, and name that module"
    ),
    "__import__('types').ModuleType('__main__')": (
        "UserError: a corpus or filter of your own cannot be in the script or notebook that is"
        " running (__main__): worker processes import it by name. Put it into a file of its own"
        " beside it, such as notes.py, and name that module"
    ),
    "'notes'": "UserError: notes is no corpus: a corpus has a Recipe that is called RECIPE",
    "'broken'": (
        "UserError: the corpus broken: it cannot be imported: ModuleNotFoundError: No module named"
        " 'torchr' (…/broken.py:1). Correct its code"
    ),
}
notes = together(holding("notes.py", "RECIPE = 5\n"), holding("broken.py", "import torchr\n"))

ESTIMATE = {
    "'wuda'": (
        "UserError: there is no corpus 'wuda': did you mean wudao? Give one of wudao, pile,"
        " fineweb, text, zhihu, zhidao, baike, cc_news, openwebtext, or the name of a module of"
        " your own that has a Recipe called RECIPE and can be imported from here"
    ),
    "'wudao', dedup='fuzzy'": (
        "UserError: --dedup fuzzy: give one of none, exact, minhash. python -m pipelines.wudao"
        " --help lists every flag"
    ),
    "'wudao', part='1/2'": "UserError: --plan estimates whole runs: leave --part out",
    "'wudao', append=True": (
        "UserError: --plan estimates whole runs: leave --append, --every-tokens and --watch out"
    ),
    "'wudao', runner='Zork'": (
        "UserError: --runner Zork: give one of …PrismRunner…, or MODULE.CLASS of your own"
    ),
    "'text'": (
        "UserError: --input is missing: name the files of text, a folder, a glob or a URL. (python"
        " -m pipelines.wudao runs on a built-in sample.)"
    ),
}

T = f"sentencepiece:{MODEL}"
MAKING = {
    "ReadCorpus('wuda')": (
        "UserError: the corpus wuda: it cannot be imported: ModuleNotFoundError: No module named"
        " 'wuda' (…). Correct its code"
    ),
    "ReadCorpus('text')": "UserError: ReadCorpus('text') has no input: give input=PATH",
    "ReadCorpus('text', input='nowhere')": (
        "UserError: The input nowhere does not exist; . holds data, in, rules.py."
    ),
    "ReadCorpus('wudao', titel='never')": (
        "UserError: ReadCorpus('wudao') has no option 'titel': did you mean title? Give one of"
        " input, min_chars, sample, seed, skip_unreadable, split_bytes, title, title_separator."
        " What else the command takes belongs to the other transforms"
    ),
    "ReadCorpus('wudao', dedup='exact')": (
        "UserError: ReadCorpus('wudao') has no option 'dedup': give one of input, min_chars,"
        " sample, seed, skip_unreadable, split_bytes, title, title_separator. What else the command"
        " takes belongs to the other transforms"
    ),
    "ReadCorpus('wudao', split_bytes=0)": (
        "UserError: --split-bytes: 0 is not at least 1. python -m pipelines.wudao --help lists"
        " every flag"
    ),
    "ReadCorpus('wudao', sample=2)": (
        "UserError: --sample: '2' is not a share: a number from 0 to 1, or 0% to 100%, as in 0.05"
        " or 5%. python -m pipelines.wudao --help lists every flag"
    ),
    "ReadCorpus('text', input='in', provenance='order')": (
        "UserError: --provenance: a column cannot be called 'order', which is taken or invalid;"
        " choose another, as in from_order=FIELD"
    ),
    "ReadCorpus('text', input='in', provenance='source')": (
        "UserError: the corpus of the input 'text' has a column 'source', a name that transforms"
        " use for their own: call it otherwise in its `provenance`"
    ),
    "ReadCorpus('text', input='in', provenance='repaired')": (
        "UserError: --provenance: a column cannot be called 'repaired', which is taken or invalid;"
        " choose another, as in from_repaired=FIELD"
    ),
    "IdentifyLanguage('klingon')": (
        'UserError: "klingon" is not a language code of the fastText model lid.176: the codes are'
        " on https://fasttext.cc/docs/en/language-identification.html."
    ),
    "IdentifyLanguage(['zh', 'en'])": (
        "UserError: IdentifyLanguage(['zh', 'en']): give names one by one, as in"
        ' IdentifyLanguage("zh", "en")'
    ),
    "IdentifyLanguage('zh', model='nowhere.bin')": (
        "UserError: nowhere.bin: no such language model; expected fastText's lid.176.bin or"
        " lid.176.ftz, available from https://fasttext.cc/docs/en/language-identification.html."
    ),
    "JudgeQuality('en=gofer')": 'UserError: "gofer" is no quality profile: did you mean gopher?…',
    "JudgeQuality(['gopher'])": (
        "UserError: JudgeQuality(['gopher']): give names one by one, as in"
        ' JudgeQuality("en=gopher+c4", "zh=fineweb2-zh")'
    ),
    "JudgeQuality('none', classifier=['a.bin:hq>=0.5'])": (
        "UserError: a.bin: No such file or directory; expected a classifier that fastText's"
        " supervised training wrote (.bin or .ftz)."
    ),
    "DropAddresses()": (
        "UserError: : no entries. Each line should hold a domain (example.com) or the beginning of"
        " a URL (example.com/shop)."
    ),
    "DropAddresses('blocked.txt')": (
        "UserError: The input blocked.txt does not exist; . holds data, in, rules.py."
    ),
    "DropAddresses(['a', 'b'])": (
        "UserError: DropAddresses(['a', 'b']): give names one by one, as in"
        ' DropAddresses("domains.txt", "urls.txt")'
    ),
    "Decontaminate()": (
        "UserError: : none of the 0 items has 8 words, so there is nothing to look for. In plain"
        " text each line is an item: put every item on a single line."
    ),
    "Decontaminate('bench.txt')": (
        "UserError: The input bench.txt does not exist; . holds data, in, rules.py."
    ),
    "Decontaminate(['a', 'b'])": (
        "UserError: Decontaminate(['a', 'b']): give names one by one, as in"
        ' Decontaminate("mmlu.jsonl", "ceval.jsonl")'
    ),
    "OwnFilter('rules')": (
        "UserError: --filter rules: no installed package offers a filter of that name (none is"
        " installed). Write [AFTER=]MODULE:NAME[?OPTION=VALUE&…], as in quality=my_rules:no_ads"
    ),
    "OwnFilter('rules:tokenize')": (
        "UserError: a filter cannot be called 'tokenize': a step, rule or model of corpusmill is"
        " called so, and figures and reasons go by these names"
    ),
    "OwnFilter('rules:none')": "UserError: --filter rules:none: rules holds no 'none'",
    "OwnFilter('clean=rules:one')": (
        'UserError: OwnFilter("clean=rules:one"): its place is where it is put, so leave clean= out'
    ),
    "Tokenize('sentencepiece:nowhere.model')": (
        "UserError: sentencepiece:nowhere.model: there is no file nowhere.model. No tokenizer yet?"
        " python -m pipelines.train_tokenizer --help shows how to train one."
    ),
    "Tokenize('gpt2')": (
        'UserError: --tokenizer "gpt2": write tiktoken:gpt2. No tokenizer yet? python -m'
        " pipelines.train_tokenizer --help shows how to train one."
    ),
    "Steps()": "UserError: Steps() has no step: give it some, as in Steps(Clean(), Tokenize(…))",
    "Steps(MaskPersonalData(), Clean(), MaskPersonalData())": (
        "UserError: Steps(…): MaskPersonalData adds the column 'pii.email', as MaskPersonalData"
        " before it does: give each transform once"
    ),
    "Steps(Clean(), Steps(Clean()))": (
        "UserError: Steps(…): Clean adds the column 'repaired', as Clean before it does: give each"
        " transform once"
    ),
    "ToRows(year=list)": (
        "UserError: ToRows(year=<class 'list'>): a column of a row is a str, int, float or bool"
    ),
    "FromRows(source='a b')": (
        "UserError: FromRows: 'a b' cannot be the name of a source, which names a folder: use"
        " letters, digits and ._-; rename the field if it means something else"
    ),
    "FromRows(source='..')": (
        "UserError: FromRows: '..' cannot be the name of a source, which names a folder: use"
        " letters, digits and ._-; rename the field if it means something else"
    ),
    f"WriteDataset('out', tokenizer={T!r}, dedub='exact')": (
        "UserError: WriteDataset has no option 'dedub': did you mean dedup? Give one of dedup,"
        " minhash_threshold, clusters, validation, shards, shard_tokens, keep_dropped,"
        " max_reject_rate, keep_segments, overwrite, workers. What says how texts are read or"
        " judged belongs to the other transforms"
    ),
    f"WriteDataset('out', tokenizer={T!r}, languages='zh')": (
        "UserError: WriteDataset has no option 'languages': give one of dedup, minhash_threshold,"
        " clusters, validation, shards, shard_tokens, keep_dropped, max_reject_rate, keep_segments,"
        " overwrite, workers. What says how texts are read or judged belongs to the other"
        " transforms"
    ),
    f"WriteDataset('out', tokenizer={T!r}, validation=0.06)": (
        "UserError: --validation 0.06 holds out more than 5 % of the documents; give at most 0.05"
    ),
    f"WriteDataset('out', tokenizer={T!r}, dedup='fuzzy')": (
        "UserError: --dedup fuzzy: give one of none, exact, minhash. python -m pipelines.text"
        " --help lists every flag"
    ),
    f"WriteDataset('out', tokenizer={T!r}, shards=-1)": (
        "UserError: --shards: '-1' is not a whole number from 0 on, as in 300, 20k, 100M or 2G."
        " python -m pipelines.text --help lists every flag"
    ),
    "WriteDataset('out', tokenizer='hf:nowhere.json')": (
        "UserError: hf:nowhere.json: there is no file nowhere.json. No tokenizer yet? python -m"
        " pipelines.train_tokenizer --help shows how to train one."
    ),
    f"WriteDataset('out', tokenizer={T!r}, metrics=['glm'])": (
        "UserError: WriteDataset(metrics=[…]) was given 'glm': give it the transforms themselves"
        " whose metrics the audit table keeps, as in judge = JudgeQuality(…); metrics=[judge]"
    ),
}
"""Transforms that cannot be made."""

PIPE = """
import apache_beam as beam
from apache_beam.transforms.window import FixedWindows
from pipelines.transforms import *
pipeline = beam.Pipeline("FnApiRunner")
read = pipeline | ReadCorpus("wudao")
rows = pipeline | beam.Create([beam.Row(text="a", n=1)])
def of(**fields):
    return pipeline | "Of" >> beam.Create([beam.Row(**fields)])
def write(output="out", **options):
    return WriteDataset(output, tokenizer=TOKENIZER, **options)
""".replace("TOKENIZER", repr(T))
COMPOSING = {
    "read | Clean()": (
        "UserError: Clean was given all outputs of a transform at once: give it those that stay, as"
        " in … .kept | …"
    ),
    "(read.kept | Clean()) | MaskPersonalData()": (
        "UserError: MaskPersonalData was given all outputs of a transform at once: give it those"
        " that stay, as in … .kept | …"
    ),
    "read | write()": (
        "UserError: WriteDataset was given all outputs of a transform at once: give it those that"
        " stay, as in … .kept | …"
    ),
    "read.kept | write(dropped=[read.dropped, read.dropped])": (
        "UserError: WriteDataset was given the same collection twice, which would count its rows"
        " twice: give what stays as its input, and each transform's outputs once in dropped=[…]"
    ),
    "read.kept | write(dropped=[read.kept])": (
        "UserError: WriteDataset was given the same collection twice, which would count its rows"
        " twice: give what stays as its input, and each transform's outputs once in dropped=[…]"
    ),
    "read.kept | write(metrics=['glm'])": (
        "UserError: WriteDataset(metrics=[…]) was given 'glm': give it the transforms themselves"
        " whose metrics the audit table keeps, as in judge = JudgeQuality(…); metrics=[judge]"
    ),
    "read.kept | beam.WindowInto(FixedWindows(9)) | write(overwrite=True)": (
        "UserError: WriteDataset was given a collection in windows with overwrite=True: each window"
        " adds a generation as it closes. Leave the option out, or take a new output"
    ),
    "read.kept | beam.WindowInto(FixedWindows(9)) | write(commit=False)": (
        "UserError: WriteDataset was given a collection in windows with commit=False: each window"
        " adds a generation as it closes.…"
    ),
    "read.kept | beam.WindowInto(FixedWindows(9)) | write('data')": (
        "UserError: …/data holds a dataset of pipelines.wudao, not of pipelines.pipeline. Give the"
        " options that it was made with, or another output"
    ),
    "read.kept | 'One' >> write(), read.dropped | 'Two' >> write()": (
        "UserError: two WriteDataset of one pipeline write to …/out: give each an output of its"
        " own, or flatten their inputs into one"
    ),
    "write().commit()": (
        "UserError: the pipeline itself makes the dataset …/out, with its last step: leave commit()"
        " out, or give WriteDataset commit=False"
    ),
    "pipeline | 'One' >> beam.Create([1]) | FromRows()": (
        "UserError: FromRows needs rows with a schema, not elements of <class 'int'>: make"
        " beam.Row(text=…, url=…) in a beam.Map, or declare .with_output_types(A_NAMED_TUPLE)"
    ),
    "of(body='a') | FromRows()": "UserError: FromRows: rows have no field 'text'; they have body",
    "of(text='a', order=1) | FromRows()": (
        "UserError: FromRows: a field cannot be called 'order', which is a column of batches that"
        " is made otherwise: choose another name, as in from_order"
    ),
    "of(text='a', path='x', position=1) | FromRows()": (
        "UserError: FromRows: rows have position but not source, length, ordinal: either all of an"
        " identity, as ToRows gives it, or none but source and path. Rename the field if it means"
        " something else"
    ),
    "of(text='a', at=[1]) | FromRows()": (
        "UserError: FromRows: the field 'at' is of List[<class 'int'>]; a column is of str, int,"
        " float or bool. Leave it out, or make a text of it"
    ),
    "of(text='a') | FromRows(id='url')": (
        "UserError: FromRows: rows have no field 'url'; they have text"
    ),
    "read.kept | write('data')": (
        "UserError: …/data holds a dataset already: give WriteDataset another output, or"
        " overwrite=True to replace it"
    ),
}
"""Pipelines that cannot be composed."""

OPENING = {
    "Dataset.open('nowhere')": (
        "UserError: nowhere does not exist: give a dataset's folder (--output of a pipeline)."
    ),
    "Dataset.open('in')": (
        "UserError: in holds no dataset: it has no manifest.json. Give the folder that a pipeline"
        " wrote (its --output), or run one: python -m pipelines.wudao --output DIR"
    ),
    "Dataset.open('data@7')": (
        "UserError: there is no manifest number 7: this dataset has the numbers 1 to 1. (Those of"
        " before it was overwritten or compacted are gone.)"
    ),
    "Dataset.open('data').as_of(0)": (
        "UserError: there is no manifest number 0: this dataset has the numbers 1 to 1. (Those of"
        " before it was overwritten or compacted are gone.)"
    ),
    "Dataset.open('data').documents('news')": (
        "UserError: data has no source 'news': give one of wudao."
    ),
    "Dataset.open('s3://me:secret@b/data')": (
        "UserError: The place s3://b/data was given with a password, but addresses are written"
        " beside the dataset. Leave it out and set FSSPEC_S3_USERNAME and FSSPEC_S3_PASSWORD, or"
        " whatever the protocol's library reads."
    ),
}

ROWS = (
    *(
        raised(f"build({x})", f"import pipelines\npipelines.build('wudao', {x})", says, scene=lines)
        for x, says in BUILD.items()
    ),
    *(
        raised(f"build({x})", f"import pipelines\npipelines.build({x})", says, scene=notes)
        for x, says in CORPORA.items()
    ),
    *(
        raised(f"estimate({x})", f"import pipelines\npipelines.estimate({x})", says)
        for x, says in ESTIMATE.items()
    ),
    *(
        raised(
            x.replace(T, "T"),
            f"from pipelines.transforms import *\n{x}",
            says,
            scene=together(
                dataset,
                holding("in/a.jsonl", LINES),
                holding("rules.py", "def tokenize(batch): pass\none = tokenize\n"),
            ),
        )
        for x, says in MAKING.items()
    ),
    *(raised(x, f"{PIPE}{x}", says, scene=dataset) for x, says in COMPOSING.items()),
    *(
        raised(x, f"from shards import Dataset\n{x}", says, scene=dataset)
        for x, says in OPENING.items()
    ),
    *(
        raised(
            f"document {number} of 6",
            f"from shards import Dataset\nDataset.open('data').documents()[{number}]",
            f"IndexError: there is no document {number}: there are 6",
            scene=dataset,
            code=1,
        )
        for number in (6, -7)
    ),
    raised(
        "build(languages=['klingon'])",
        "import pipelines\npipelines.build('wudao', languages=['klingon'])",
        'UserError: "klingon" is not a language code of the fastText model lid.176: the codes are'
        " on …",
        writes=("build", "build/wudao"),
    ),
    raised(
        "pipelines.bild",
        "import pipelines\npipelines.bild",
        "AttributeError: module 'pipelines' has no attribute 'bild'",
        code=1,
    ),
)
