"""What the settings of Kafka's Java client mean, for clients that are not Java's.

Whoever comes from the JVM connector brings its ``kafka.*`` options along. Here each of them is
read as Java reads it; the adapters only spell the result as their clients do. A setting that
governs what a read of a range does not have is accepted and left out (``WITHOUT_EFFECT``), and
one that would need a JVM is refused with what to set instead (``REFUSED``).

No message and no ``repr`` holds a secret: values are named only where they are numbers or
choices.
"""

from .reading import not_known, read_java_settings, whole_number
from .stores import StoreFormat, pem, store_format
from .tables import REFUSED, WITHOUT_EFFECT
from .values import TLS_1_2, TLS_1_3, JavaSettings, Login, Secret, Store, Tls

__all__ = [
    "REFUSED",
    "TLS_1_2",
    "TLS_1_3",
    "WITHOUT_EFFECT",
    "JavaSettings",
    "Login",
    "Secret",
    "Store",
    "StoreFormat",
    "Tls",
    "not_known",
    "pem",
    "read_java_settings",
    "store_format",
    "whole_number",
]
