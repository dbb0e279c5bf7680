"""The languages of the page: Chinese names beside its English ones, and those of texts it shows."""

import re

from pipelines.filters.langid import plain_code

_LABEL = re.compile(r"([a-z]{2,3})(?:[_-]([A-Za-z]{2,4}))?")

_NAMES = {
    # Sections.
    "Generations": "各代数据",
    "Funnel": "筛选漏斗",
    "Parts": "语料分组",
    "Distributions": "分布",
    "Duplicates": "重复",
    "Examples": "样例",
    "Rejects": "无法读取的记录",
    "Throughput": "处理速度",
    "Wall time": "实际用时",
    "Projection": "规模推算",
    "Settings": "设置",
    "Inputs": "输入",
    "Tokenizer": "分词器",
    "Libraries": "软件库",
    # What documents are counted by.
    "dataset": "数据集",
    "finished": "完成时间",
    "finished, UTC": "完成时间 (UTC)",
    "machine": "机器",
    "source": "来源",
    "stage": "阶段",
    "reason": "原因",
    "part": "分组",
    "generation": "代",
    "language": "语言",
    "metric": "指标",
    "drops": "丢弃条件",
    "size": "规模",
    "groups": "组数",
    "file": "文件",
    "files": "文件",
    "file or folder": "文件或目录",
    "why": "原因",
    "phase": "步骤",
    # Figures.
    "read": "读入",
    "kept": "保留",
    "dropped": "丢弃",
    "quarantined": "隔离",
    "documents": "文档",
    "new documents": "新文档",
    "of documents": "占文档",
    "of bytes": "占字节",
    "share": "占比",
    "text": "文本",
    "bytes": "字节",
    "bytes kept": "保留字节",
    "tokens": "词元",
    "tokens kept": "保留词元",
    "train tokens": "训练词元",
    "validation tokens": "验证词元",
    "shards": "分片",
    "of them known": "其中已有",
    "took": "用时",
    "median lag": "延迟中位数",
    "worst lag": "最长延迟",
    "CPU seconds": "CPU 秒",
    "CPU hours": "CPU 小时",
    "MB/s on a core": "单核 MB/s",
    "tasks": "任务",
    "done before": "先前完成",
    "wall time": "实际用时",
    "vocabulary": "词表",
    "special tokens": "特殊词元",
    # Titles of pictures and tables.
    "Length in bytes": "字节长度",
    "Length in tokens": "词元长度",
    "Language score": "语言得分",
    "New documents": "新文档",
    "Tokens of the dataset": "数据集词元总数",
    "Dropped as known": "因已有而丢弃",
    "Lag from arrival to commit": "从到达到提交的延迟",
    "Groups of equal texts": "相同文本的组",
    "Groups that share a band": "共享哈希段的组",
    "Groups of near-duplicates": "近似重复的组",
    "candidates compared": "比较过的候选对",
    "of these not similar enough": "其中不够相似",
    # Stages of the map, and rows of the wall time.
    "read: unpack, parse, make the text": "解压、解析、生成文本",
    "block: URL blocklist": "网址黑名单",
    "clean: repair Unicode": "修复 Unicode",
    "langid: language": "语言识别",
    "quality: rules": "质量规则",
    "decontaminate: benchmarks": "去除评测集污染",
    "mask: personal data": "遮盖个人信息",
    "tokenize": "分词",
    "fingerprint: hash of the text": "文本哈希",
    "segment: sort and write": "排序并写入",
    "all stages": "全部阶段",
    "plan, commit and the rest": "规划、提交及其余",
    "this attempt": "本次运行",
}


def chinese(name: str) -> str:
    """Return the Chinese name of what the page names, "" for names that come from elsewhere."""
    return _NAMES.get(name, "")


def language_tag(label: str | None) -> str:
    """Return the `lang` of a text (BCP 47) by the label of a model, "" if that says none.

    A browser chooses fonts by it: Chinese and Japanese share characters that they write otherwise.
    """
    match = _LABEL.fullmatch(label or "")
    return "-".join(filter(None, (plain_code(match[1]), match[2]))) if match else ""
