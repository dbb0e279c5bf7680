"""Lists the faults that no test can see, each with the reason; `make mutants` omits these.

The results print the key of each survivor. A key depends only on the code of the function.
"""

_SAME, _COST = "nothing differs", "only time or memory differs"
_GPU, _LOOK = "it takes a GPU", "how a picture looks"

UNSEEN = {
    "d5bd00f8f0d2cef1": f"shards/sampling/trace.py, len - 1: {_SAME}, one window more is tried",
    "79831008258540fb": f"shards/merged.py, high + 1: {_SAME} but for one order in 2^60",
    "961eb314df90dc5c": f"pipelines/read/stream.py, 64 << 10: {_COST}, a larger buffer",
    "e618fc3d2add6e99": f"pipelines/process/read_corpus.py, reshuffle: {_COST}, a further spread",
    "1d50ecac709c747a": f"pipelines/write/segment_writer.py, _close: {_COST}, a larger segment",
    "c8b66e3d378a6e94": "pipelines/job/build.py, silence_beam: Beam's chatter on a busy machine",
    "97a37004c1e26e54": "shards/maintenance/compact.py, rejects: row groups without rows",
    "77bedd4e73ae8066": f"shards/view/audit.py, total: {_SAME}, nobody asks for it there",
    "cd0bde41b6ac4845": f"trainer/pretraining.py, return 0: {_SAME}, opening the data reports it",
    "c9db0def741fdfce": f"pipelines/tokenizers/sentencepiece_model.py, count: {_SAME}, as unused",
    "571688ba9b0046d4": f"trainer/blanks/text.py, words >> 32: {_SAME} but for one in 2^31",
    "09380453441b857f": f"shards/view/records.py, <=: {_SAME}, a record has further columns",
    "627872d2dc5bcc0d": f"pipelines/read/parquet.py, use_threads: {_COST}",
    "34d80112e005a9b7": f"pipelines/corpus/unreadable.py, 100: {_SAME}, one record more",
    "341d764b25494094": f"trainer/blanks/spans.py, ends >= budgets: {_COST}, more is drawn",
    "349f84b8f6f69c42": f"trainer/plot.py, linewidth: {_LOOK}",
    "7ecbb48e8ad233be": f"trainer/plot.py, linewidth: {_LOOK}",
    "56972c1c800ca0ec": "shards/exports/formats.py, 100_000_000: a file of that many tokens",
    "46a783fb9f51f370": f"trainer/metrics.py, peak: {_GPU}",
    "57b45bfc4da238ec": f"trainer/pretraining.py, flops: {_GPU}",
    "73b5df7c1eff1508": f"trainer/export/export.py, DS_ACCELERATOR: {_GPU}",
    "7d56d3969ea0ad6f": "shards/removals.py, files: a link that somebody puts into a dataset",
    "dd2ff5bacd25210d": "shards/storage/remote.py, return False: a race with another owner",
    "7094459143009988": "shards/sampling/trace.py, late_epochs: epochs that just overlap",
    "824d88122c192d3d": f"shards/merged.py, reshape: {_SAME}, numpy takes any negative size",
    "24dd2925f75d250c": f"trainer/engine.py, compiles: {_COST}",
    "da9b2d8e5ae7aac7": "trainer/loader.py, True: a worker that iterates twice, after a break",
    "6cb749fe73df5c99": f"shards/storage/remote.py, 32: {_COST}, one connection more is kept",
    "218b79464f1531e6": f"pipelines/tokenizers/piece_kernels.py, or: {_COST}, parts are longer",
    "cc261942dfa29d22": f"pipelines/steps/fasttext.py, 0x9E…: {_COST}, a worse scatter",
    "ee94af4db33572ce": f"trainer/tasks/metrics.py, f1: {_SAME}, it is symmetric",
    "5a6664af55463674": f"trainer/tasks/superglue.py, _overlap: {_SAME}, it is symmetric",
    "cab016d9db6232fd": f"pipelines/merge/ranges.py, the segments of a range: {_COST}, more ranges",
    "a468a96ff594ada7": f"shards/view/similarity.py, least: {_SAME}, no similarity is equal to it",
    "76a7bcc38b0a9a8e": f"pipelines/read/peek.py, return: {_SAME}, the caller uses `or`",
    "7ed48a97b41ebb50": f"pipelines/dedup/minhash.py, 2**64: {_SAME}, bases are smaller",
    "6a41bc48abc76d60": f"pipelines/report/pictures.py, share > limit: {_LOOK}",
    "866af3e6c8dd4bb0": "trainer/saver.py, fsync: it takes a machine that loses power",
    "2a4e3da24b2ea4cd": "shards/exports/megatron.py, 32_766: it takes as many shards",
    "ee181e0da5b74391": f"pipelines/steps/units.py, 0x32000: {_SAME}, no letter is there",
}
