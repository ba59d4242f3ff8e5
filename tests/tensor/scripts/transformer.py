"""A transformer encoder that labels sequences, as PyTorch's users write it; `main` returns the
losses."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset


class Sequences(Dataset):
    def __init__(self, tokens, labels):
        self.tokens = torch.tensor(tokens, dtype=torch.int64)
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"tokens": self.tokens[i], "label": self.labels[i]}


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class Classifier(nn.Module):
    def __init__(self, vocab, d_model=16, nhead=4, layers=2, classes=3):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(vocab, d_model, padding_idx=0)
        self.encoding = PositionalEncoding(d_model, dropout=0.0)
        layer = nn.TransformerEncoderLayer(d_model, nhead, 32, dropout=0.0, activation="gelu")
        self.encoder = nn.TransformerEncoder(
            layer, layers, norm=nn.LayerNorm(d_model), enable_nested_tensor=False
        )
        self.heads = nn.ModuleDict({"label": nn.Linear(d_model, classes)})
        self.scale = nn.ParameterList([nn.Parameter(torch.ones(1))])
        self.init_weights()

    def init_weights(self):
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.zeros_(self.heads["label"].bias)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, tokens):
        mask = tokens == 0
        x = self.embedding(tokens).transpose(0, 1) * math.sqrt(self.d_model)
        x = self.encoder(self.encoding(x), src_key_padding_mask=mask)
        kept = (~mask).float().t().unsqueeze(-1)
        pooled = (x * kept).sum(dim=0) / kept.sum(dim=0).clamp_min(1)
        return self.heads["label"](F.normalize(pooled, dim=-1)) * self.scale[0]


def main(tokens, labels, weights):
    torch.manual_seed(1)
    dataset = Subset(Sequences(tokens, labels), list(range(len(tokens))))
    loader = DataLoader(dataset, batch_size=8, num_workers=0)
    model = Classifier(vocab=12)
    model.load_state_dict({k: torch.as_tensor(v) for k, v in weights(model).items()})
    seen = []
    hook = model.encoder.register_forward_hook(
        lambda module, args, output: seen.append(tuple(output.shape))
    )
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.98), weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=4 * len(loader), pct_start=0.25
    )
    losses = []
    for epoch in range(4):
        for batch in loader:
            logits = model(batch["tokens"])
            loss = criterion(logits, batch["label"])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        with torch.inference_mode():
            probs = torch.softmax(model(dataset[0]["tokens"].unsqueeze(0)), dim=-1)
            entropy = -torch.einsum("bc,bc->b", probs, probs.log())
            losses.append(entropy.item())
    hook.remove()
    losses.append(float(len(seen)))
    return losses
