class no_ads:
    metrics = ("commas",)
    changes_text = True

    def __init__(self, word):
        self.word = word

    def __call__(self, batch):
        texts = batch["text"].to_pylist()
        return {
            "reason": ["ads" if self.word in text else None for text in texts],
            "text": [text.replace("sixty", "60") for text in texts],
            "commas": [float(text.count(",")) for text in texts],
        }
