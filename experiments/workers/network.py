"""A small network trained by DP-SGD, with Opacus."""

from __future__ import annotations

from typing import Any

import numpy as np

from .codes import dense


def warm_up() -> None:
    """Import what is trained with."""
    import opacus  # noqa: F401
    import torch

    torch.set_num_threads(1)


def predict(request: dict[str, Any], data: Any) -> np.ndarray:
    """Two hidden layers; batches are Poisson samples, and Opacus calibrates the noise.

    ``params`` has epochs, batch, step (of Adam) and width.
    """
    import torch
    from opacus import PrivacyEngine
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    params = request["params"]
    x = torch.tensor(dense(data, request["nominal"], "standard"), dtype=torch.float32)
    train = len(data["x_train"])
    y = torch.tensor(data["y_train"], dtype=torch.float32)
    width = params["width"]
    net = nn.Sequential(
        *(nn.Linear(x.shape[1], width), nn.Tanh()),
        *(nn.Linear(width, width // 2), nn.Tanh()),
        nn.Linear(width // 2, 1),
    )
    optimizer = torch.optim.Adam(net.parameters(), params["step"])
    loader = DataLoader(TensorDataset(x[:train], y), batch_size=params["batch"])
    net, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=net,
        optimizer=optimizer,
        data_loader=loader,
        target_epsilon=request["epsilon"],
        target_delta=request["delta"],
        epochs=params["epochs"],
        max_grad_norm=1.0,
    )
    loss = nn.BCEWithLogitsLoss()
    for _ in range(params["epochs"]):
        for rows, labels in loader:
            if len(rows):
                optimizer.zero_grad()
                loss(net(rows).squeeze(1), labels).backward()
                optimizer.step()
    net.eval()
    with torch.no_grad():
        return torch.sigmoid(net(x[train:]).squeeze(1)).numpy()
