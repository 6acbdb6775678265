"""What the two players minimise, on scores (batch, 1) of a discriminator."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from models.gans.recipes import GanRecipe


def discriminator_loss(recipe: GanRecipe, discriminator: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """Of ``discriminator`` on as many real as generated images (batch, channels, side, side).

    Cross-entropy, Goodfellow et al. 2014, or Gulrajani et al. 2017, equation (3), with drift.
    """
    on_real: Tensor = discriminator(real).float()
    on_made: Tensor = discriminator(made).float()
    if not recipe.wasserstein:
        return softplus(-on_real).mean() + softplus(on_made).mean()
    penalty = recipe.penalty * gradient_penalty(discriminator, real, made)
    return on_made.mean() - on_real.mean() + penalty + recipe.drift * on_real.square().mean()


def generator_loss(recipe: GanRecipe, scores: Tensor) -> Tensor:
    """Of the generator whose images have ``scores``: the cross-entropy that does not saturate, or the mean score."""
    return -scores.float().mean() if recipe.wasserstein else softplus(-scores.float()).mean()


def gradient_penalty(discriminator: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """Mean of (norm of the score's gradient - 1)^2 at points between real and generated images, with derivatives."""
    share = torch.rand(len(real), 1, 1, 1, dtype=real.dtype, device=real.device)
    between = torch.lerp(made.detach(), real, share).requires_grad_()
    scores = discriminator(between)
    (slopes,) = torch.autograd.grad(scores.sum(), between, create_graph=True)
    penalty: Tensor = (slopes.flatten(1).norm(dim=1) - 1).square().mean()
    return penalty
