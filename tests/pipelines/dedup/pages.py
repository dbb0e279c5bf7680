"""Makes pages, many of which are copies or versions of earlier ones."""

import random
from itertools import permutations

from pipelines.dedup.minhash import similarity
from tests.pipelines.dedup.plain import sign

ALPHABET = [chr(code) for code in range(0x4E00, 0x6E00)]


def related_pages(rng: random.Random, num: int) -> list[str]:
    """Return `num` pages of random characters: copies, versions of each other, and new pages."""
    pages: list[str] = []
    for _ in range(num):
        draw = rng.random()
        if pages and draw < 0.15:  # a copy with different white space
            pages.append(f"  {rng.choice(pages)}\n")
        elif pages and draw < 0.5:  # a version of an earlier page
            page = list(rng.choice(pages))
            for _ in range(rng.randint(1, 12)):
                page[rng.randrange(len(page))] = rng.choice(ALPHABET)
            pages.append("".join(page))
        else:
            pages.append("".join(rng.choices(ALPHABET, k=rng.randint(150, 400))))
    return pages


def torn_pages(rng: random.Random, num: int) -> list[str]:
    """Return triples of pages, in any order, that show with which page a page is compared.

    In a triple (page, first, second), the page is similar to the second, but not quite to the
    first, and shares with the first all bands that it shares with the second. So the page is
    dropped if the second precedes it, unless it is compared with the first instead, as it must be
    if the first precedes both.
    """
    pages: list[str] = []
    while len(pages) < 3 * num:
        page = rng.choices(ALPHABET, k=200)
        versions = [page]
        for _ in range(40):
            at, size = rng.randrange(150), rng.randrange(24, 36)
            versions.append([*page[:at], *rng.choices(ALPHABET, k=size), *page[at + size :]])
        found = sign(["".join(each) for each in versions])
        shared = found.bands == found.bands[0]
        alike = similarity(found.slots, found.slots[[0] * len(versions)]) >= 0.7
        for one, two in permutations(range(1, len(versions)), 2):
            if shared[two].any() and (shared[one] >= shared[two]).all() and alike[two] > alike[one]:
                pages += ["".join(versions[at]) for at in (0, one, two)]
                break
    rng.shuffle(pages)
    return pages
