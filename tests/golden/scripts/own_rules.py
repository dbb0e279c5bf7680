from pipelines.quality import Profile, Threshold


def measure(text, bounds):
    words = text.words("spaces")
    short = sum(len(word) <= bounds["short_word"] for word in words)
    return text.replaced(text.text.strip("~")), (len(words), short / max(1, len(words)))


few = Profile(
    family="few",
    metrics=("words", "short"),
    thresholds=(
        Threshold("short_word", 2, "", "words of so many letters are short"),
        Threshold("min_words", 3, "too-few", "least number of words"),
        Threshold("max_short", 0.5, "too-short", "most short words, as a share"),
    ),
    measure=measure,
    words="spaces",
)


def pairs(text):
    return [text[start : start + 2] for start in range(0, len(text), 2)]
