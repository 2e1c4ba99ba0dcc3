"""The tokenizer of the tiny models, and their chat template.    (needs: pip install tokenizers)"""
import glob
import re
import sysconfig

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB = 8192
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def texts():
    """Doc strings of the Python standard library: enough English for a tokenizer."""
    for path in sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py")):
        with open(path, errors="ignore") as f:
            yield from re.findall(r'"""(.*?)"""', f.read(), re.S)


def train():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(
        texts(),
        trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
    )
    return tok
