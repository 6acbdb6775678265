"""How each pair of networks is trained.

The papers': for DCGAN five layers, width 64, batch norm, the initial weights, and Adam with 2e-4 and beta_1 0.5 (Vlaar,
appendix A, after Radford et al. 2016), and latents of 100 numbers (the latter). Jeon, Jeong and Choi 2020 have a DCGAN
"with the Wasserstein distance" of which they say no more: the weight 10 of the gradient penalty, Adam's 1e-4 and beta_2
0.9 are those of Gulrajani et al. 2017. For PGGAN everything but sizes is from Karras et al. 2018.

Ours, to save time: half the width, except in dcgan-mnist-64, numbers of epochs, batches, three critic steps instead of
five, and products in bfloat16 at the whole width; normal latents, and for the Wasserstein form beta_1 0.5. The latent
of two numbers is for pictures of its plane. PGGAN on FashionMNIST stands in for those on photographs, with 32 maps and
latents of 64 numbers instead of 512.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["dcgan", "wgan-gp", "pggan"]


@dataclass(frozen=True)
class GanRecipe:
    """Everything that decides a trained generator and its discriminator, apart from the seed."""

    name: str
    """What ``python -m models gan`` calls it."""
    paper: str
    """Where the networks come from."""
    dataset: str
    """mnist or fashion-mnist; pggan: cifar-10 too."""
    kind: Kind = "dcgan"
    """dcgan: cross-entropy; wgan-gp: Wasserstein distance, gradient penalty, no batch norm in the critic; pggan: the
    same distance, and networks that grow from 4 x 4 to 32 x 32."""
    width: int = 32
    """Maps of the widest resolution in dcgan and wgan-gp, of the narrowest in pggan."""
    latent: int = 100
    epochs: int = 5
    """Passes over the training set of the discriminator."""
    batch: int = 128
    generator_rate: float = 2e-4
    discriminator_rate: float = 2e-4
    """Learning rates of Adam."""
    betas: tuple[float, float] = (0.5, 0.999)
    """Of Adam, for both."""
    critic_steps: int = 1
    """Batches on which the discriminator learns before the generator does once."""
    penalty: float = 0.0
    """Weight of the mean of (norm of the critic's gradient - 1)^2, Gulrajani et al. 2017, equation (3)."""
    drift: float = 0.0
    """Weight of the mean of squared scores of real images, which keeps these near 0: Karras et al. 2018, A.1."""
    average: float | None = None
    """Decay a step of the averaged weights, which are then the generator that is exported."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the products while it is trained: float32, or bfloat16 by autocast. The weights are float32 all the same."""

    @property
    def wasserstein(self) -> bool:
        """Whether scores are compared as they are, and not through cross-entropy."""
        return self.kind != "dcgan"


def _recipes(*recipes: GanRecipe) -> dict[str, GanRecipe]:
    return {recipe.name: recipe for recipe in recipes}


DCGAN = "Radford, Metz and Chintala 2016"
GAN_RECIPES: dict[str, GanRecipe] = _recipes(
    GanRecipe(name="dcgan-mnist", paper=DCGAN, dataset="mnist"),
    GanRecipe(name="dcgan-mnist-2d", paper=DCGAN, dataset="mnist", latent=2),
    GanRecipe(name="dcgan-mnist-64", paper=DCGAN, dataset="mnist", width=64, precision="bfloat16"),
    GanRecipe(
        name="wgan-mnist",
        paper=f"{DCGAN}, with the loss of Gulrajani, Ahmed, Arjovsky, Dumoulin and Courville 2017",
        dataset="mnist",
        kind="wgan-gp",
        epochs=20,
        batch=64,
        generator_rate=1e-4,
        discriminator_rate=1e-4,
        betas=(0.5, 0.9),
        critic_steps=3,
        penalty=10.0,
    ),
    GanRecipe(
        name="pggan-fashion",
        paper="Karras, Aila, Laine and Lehtinen 2018",
        dataset="fashion-mnist",
        kind="pggan",
        width=32,
        latent=64,
        epochs=16,
        batch=64,
        generator_rate=1e-3,
        discriminator_rate=1e-3,
        betas=(0.0, 0.99),
        penalty=10.0,
        drift=1e-3,
        average=0.999,
    ),
)
