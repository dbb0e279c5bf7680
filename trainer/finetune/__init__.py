"""The command `python -m trainer.finetune`: a run of fine-tuning."""
