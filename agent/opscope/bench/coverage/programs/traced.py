"""JAX: a compiled step of gradient descent."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    x = jnp.asarray(generator.standard_normal((500, 200)))
    y = jnp.asarray(generator.standard_normal(500))

    def loss(weights: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)

    def descend(weights: jax.Array) -> jax.Array:
        return weights - 0.1 * jax.grad(loss)(weights)

    compiled = jax.jit(descend)

    def step() -> None:
        weights = jnp.zeros(200)
        for _ in range(300):
            weights = compiled(weights)
        weights.block_until_ready()

    return step
