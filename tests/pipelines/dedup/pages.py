"""Made-up pages of which many are copies or versions of others."""

import random


def related_pages(rng: random.Random, num: int) -> list[str]:
    """Pages of random characters: versions of each other, copies, strangers."""
    alphabet = [chr(code) for code in range(0x4E00, 0x6E00)]
    pages: list[str] = []
    for _ in range(num):
        draw = rng.random()
        if pages and draw < 0.15:  # a copy with other white space
            pages.append(f"  {rng.choice(pages)}\n")
        elif pages and draw < 0.5:  # a version
            page = list(rng.choice(pages))
            for _ in range(rng.randint(1, 12)):
                page[rng.randrange(len(page))] = rng.choice(alphabet)
            pages.append("".join(page))
        else:
            pages.append("".join(rng.choices(alphabet, k=rng.randint(150, 400))))
    return pages
