"""Data that every worker reads as they are."""

import tensorflow as tf


def unsharded(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps tf.distribute from dividing a dataset among workers, which have their own shares of it.

    Args:
        dataset: of one worker.
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
