"""A device that is reached over MQTT: what it reports, and the sound that it is given."""

from harness.drivers.mqtt.device import MqttDevice
from harness.drivers.mqtt.options import MqttOptions

__all__ = ["MqttDevice", "MqttOptions"]
