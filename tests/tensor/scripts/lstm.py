"""An LSTM that predicts the next character, as PyTorch's users write it; `main` returns the
losses."""

import io

import torch
import torch.nn as nn
from torch import optim
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


class CharLSTM(nn.Module):
    def __init__(self, vocab, hidden=24, layers=2):
        super().__init__()
        self.encoder = nn.Embedding(vocab, 12)
        self.rnn = nn.LSTM(12, hidden, num_layers=layers, batch_first=True, dropout=0.0)
        self.decoder = nn.Linear(hidden, vocab)
        self.hidden, self.layers = hidden, layers

    def forward(self, x, state=None):
        out, state = self.rnn(self.encoder(x), state)
        return self.decoder(out), state

    def init_hidden(self, batch):
        weight = next(self.parameters())
        shape = (self.layers, batch, self.hidden)
        return weight.new_zeros(shape), weight.new_zeros(*shape)


def repackage(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(repackage(part) for part in state)


def main(text, length, weights):
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    ids = torch.LongTensor([stoi[c] for c in text])
    windows = ids[: len(ids) // length * length].view(-1, length)
    inputs, targets = windows[:, :-1].contiguous(), windows[:, 1:].contiguous()
    half = inputs.size(0) // 2
    dataset = ConcatDataset(
        [TensorDataset(inputs[:half], targets[:half]), TensorDataset(inputs[half:], targets[half:])]
    )
    loader = DataLoader(dataset, batch_size=6, drop_last=True, pin_memory=False)
    model = CharLSTM(len(chars))
    model.load_state_dict({k: torch.as_tensor(v) for k, v in weights(model).items()})
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    losses = []
    for epoch in range(3):
        state = model.init_hidden(6)
        total = 0.0
        for x, y in loader:
            state = repackage(state)
            optimizer.zero_grad()
            logits, state = model(x, state)
            loss = criterion(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses += [loss.item(), norm.item()]
            total += loss.item()
        scheduler.step(total / len(loader))
        losses.append(optimizer.param_groups[0]["lr"])
    saved = io.BytesIO()
    torch.save({"model": model.state_dict(), "epoch": 3}, saved)
    saved.seek(0)
    checkpoint = torch.load(saved, map_location="cpu", weights_only=True)
    again = CharLSTM(len(chars))
    print(again.load_state_dict(checkpoint["model"]))
    model.eval()
    again.eval()
    with torch.no_grad():
        first, second = model(inputs[:2])[0], again(inputs[:2])[0]
        assert torch.equal(first, second)
        values, indices = torch.topk(first[0, -1].softmax(-1), k=3)
        losses += values.tolist() + [float(i) for i in indices]
    return losses
