"""The tasks of SuperGLUE in GLM's cloze form, as THUDM/GLM (commit 4f61ed7) asks them."""
