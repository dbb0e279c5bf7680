"""What the pages say, in English with Chinese beside it."""

from shards.view.markup import Markup, joined, tag

_CHINESE = {
    "Overview": "概览",
    "Documents": "文档",
    "Document": "文档",
    "Records": "记录",
    "Record": "记录",
    "Search": "搜索",
    "Filter": "筛选",
    "Sources": "来源",
    "Generations": "世代",
    "Languages": "语言",
    "What became of the records": "记录去向",
    "Tokenizer": "分词器",
    "Removed documents": "已移除的文档",
    "Similar documents": "相似文档",
    "Equal text": "相同文本",
    "Text": "文本",
    "Tokens": "词元",
    "Token": "词元",
    "Origin": "出处",
    "Go to": "跳转",
    "Metrics": "指标",
    "Raw bytes": "原始字节",
    "Step": "训练步",
    "all": "全部",
    "any": "任意",
    "bytes": "字节",
    "column": "列",
    "contains": "包含",
    "documents": "文档数",
    "dropped": "丢弃",
    "exact": "完全相同",
    "first": "首页",
    "from": "从",
    "generation": "世代",
    "go": "前往",
    "go on": "继续",
    "group": "分组",
    "id, URL or place": "编号、网址或位置",
    "input": "输入",
    "inputs": "输入",
    "kept": "保留",
    "language": "语言",
    "matched by": "匹配方式",
    "metric": "指标",
    "name": "名称",
    "next": "下一个",
    "number": "序号",
    "prefix": "前缀",
    "previous": "上一个",
    "quarantined": "隔离",
    "random": "随机",
    "reason": "原因",
    "record": "记录",
    "records": "记录数",
    "removed": "已移除",
    "shard": "分片",
    "shards": "分片数",
    "share": "占比",
    "similarity": "相似度",
    "source": "来源",
    "split": "划分",
    "step": "步",
    "to": "到",
    "token": "词元",
    "tokens": "词元数",
    "train": "训练",
    "validation": "验证",
    "value": "值",
    "verdict": "结论",
    "words in the text": "文中词语",
}


def both(english: str) -> Markup:
    """Return a label in both languages."""
    chinese = _CHINESE.get(english)
    if chinese is None:
        return joined(english)
    return joined(english, " ", tag("span", chinese, lang="zh", class_="zh"))


def either(english: str) -> str:
    """Return a label in both languages as plain text, for where no element can be."""
    chinese = _CHINESE.get(english)
    return english if chinese is None else f"{english} {chinese}"
