"""A small CNN for digits, as PyTorch's users write it; `main` returns the losses."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding="valid", bias=False)
        self.norm = nn.GroupNorm(4, 16)
        self.act = nn.LeakyReLU(0.1, inplace=True)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.up = nn.ConvTranspose2d(16, 4, 2, stride=2)
        self.dropout = nn.Dropout(0.0)
        self.fc = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 2)
        x = self.act(self.norm(self.conv2(x)))
        side = F.interpolate(self.up(x), scale_factor=2, mode="bilinear", align_corners=False)
        x = self.pool(x)
        x = torch.flatten(x, 1)
        x = self.dropout(x)
        return self.fc(x), side.mean()


def train_one_epoch(model, device, loader, optimizer, scheduler, losses):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad(set_to_none=True)
        output, side = model(data)
        loss = F.cross_entropy(output, target, label_smoothing=0.05) + 0.1 * side.pow(2)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()


@torch.no_grad()
def evaluate(model, device, loader):
    model.eval()
    correct, total, loss = 0, 0, 0.0
    for data, target in loader:
        output, _ = model(data.to(device))
        loss += F.nll_loss(F.log_softmax(output, dim=1), target, reduction="sum").item()
        pred = output.argmax(dim=1, keepdim=True)
        correct += pred.eq(target.view_as(pred)).sum().item()
        total += target.size(0)
    return loss / total, correct / total


def main(images, labels, weights):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = False
    images = torch.from_numpy(images).float().unsqueeze(1) / 255.0
    images = (images - images.mean()) / images.std(unbiased=False).clamp(min=1e-6)
    labels = torch.as_tensor(labels, dtype=torch.long)
    loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=False, drop_last=True)
    model = Net().to(device)
    weights = weights(model)
    model.load_state_dict({k: torch.as_tensor(v) for k, v in weights.items()}, strict=True)
    optimizer = optim.SGD(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 1e-3},
            {"params": [p for p in model.parameters() if p.dim() <= 1]},
        ],
        lr=0.1,
        momentum=0.9,
        nesterov=True,
    )
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    losses = []
    for epoch in range(4):
        train_one_epoch(model, device, loader, optimizer, scheduler, losses)
        losses.extend(evaluate(model, device, loader))
        losses.append(scheduler.get_last_lr()[0])
    return losses
