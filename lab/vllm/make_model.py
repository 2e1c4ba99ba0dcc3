"""Writes a small random-weight Llama model that vLLM serves: its text is noise, its wire is real.

usage: make_model.py DIR    (needs: transformers, torch, tokenizers)
"""
import os
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

sys.path.append(os.path.join(os.path.dirname(__file__), "../llama"))
from tiny_tokenizer import TEMPLATE, train


def main(out):
    logging.disable_progress_bar()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=train(), eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE
    )
    fast.save_pretrained(out)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=fast.vocab_size,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(out)


main(sys.argv[1])
