"""The stage ProcessSplits, which turns splits into segments."""
