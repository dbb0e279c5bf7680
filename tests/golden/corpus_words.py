"""Texts with an exact number of words and letters, in which no pair of words occurs twice."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.golden.corpora import write_jsonl

ENGLISH = """
    walk talk paint climb listen answer window garden river morning kitchen table letter
    music summer winter autumn village harbour station teacher doctor farmer sailor painter
    writer bridge castle forest meadow mountain island valley weather thunder shadow candle
    mirror blanket pillow basket bottle copper silver golden yellow purple orange little
    gentle bright narrow broken hidden frozen silent heavy early slowly quickly often never
    always maybe almost under above behind between across during until before after about
    against along around people children brother sister mother father friend stranger
    neighbour captain soldier carry bring follow remember forget believe travel wander
    return begin finish discover question reason promise journey story chapter picture
    colour number circle corner market street church school library museum theatre hospital
    factory office cottage apple cherry lemon potato onion carrot butter cheese bread coffee
    sugar pepper dinner horse rabbit sparrow eagle spider beetle salmon turtle badger donkey
""".split()  # noqa: SIM905  more readable
"""English words, none of which is a stop word in Gopher's rules."""

CHINESE = """
    发展 工作 主要 问题 进行 地方 已经 全国 经济 社会 开始 技术 重要 通过 研究
    文化 企业 历史 世界 现在 时间 生产 情况 代表 决定 关系 领导 生活 时候 可能
    学生 同时 认为 不同 作为 会议 部分 活动 需要 管理 方面 市场 组织 工业 建设
    形成 出现 许多 具有 城市 政治 发现 记者 国际 规定 影响 包括 发生 使用 中心
    教育 要求 政府 人口 建立 参加 产品 面积 提出 作用 必须 编辑 职业 制度 应该
    系统 民族 基本 增长 自然 大学 如何 计划 产生 时期 最后 表示 机构 当时 特别
    改革 长江 东西 能力 革命 基础 得到 进入 运动 目前 过程 方法 举行 群众 单位
    孩子 资源 过去 条件 学校 提高 工程 环境 提供
""".split()  # noqa: SIM905  more readable
"""Each of these is one word to jieba, and not a stop word of FineWeb-2."""


def prime(words: Sequence[str]) -> Sequence[str]:
    """Return the first P words, where P is the largest prime that the number of words allows."""
    sizes = range(len(words), 1, -1)
    return words[: next(n for n in sizes if all(n % k for k in range(2, n)))]


def endless(words: Sequence[str]) -> Iterator[str]:
    """Yield the words endlessly; within thousands of words, no pair of neighbours repeats."""
    ring = prime(words)
    for step in itertools.cycle(range(1, len(ring))):
        yield from (ring[place * step % len(ring)] for place in range(len(ring)))


def plain(count: int, words: Sequence[str] = ENGLISH) -> list[str]:
    """Return `count` words in which no pair of neighbours repeats."""
    return list(itertools.islice(endless(words), count))


def stretched(words: Sequence[str], letters: int) -> list[str]:
    """Return the words, with letters added or removed until they have `letters` letters in all."""
    found = list(words)
    for place in itertools.cycle(range(len(found))):
        missing = letters - sum(map(len, found))
        if not missing:
            return found
        word = found[place]
        if missing > 0:
            found[place] = word + word[-1]
        elif len(word) > 1:
            found[place] = word[:-1]
    return found


def cut(words: Sequence[str], each: int) -> list[Sequence[str]]:
    return [words[start : start + each] for start in range(0, len(words), each)]


def line(words: Sequence[str]) -> str:
    """Return the words joined by spaces, with a full stop instead of the last letter."""
    return " ".join(words)[:-1] + "."


def write_texts(path: Path, texts: Mapping[str, str]) -> None:
    """Write texts as JSON lines; the keys are the ids."""
    write_jsonl(path, ({"id": name, "text": text} for name, text in texts.items()))
