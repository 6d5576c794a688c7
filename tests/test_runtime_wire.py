"""The committed protocol code is what the .proto says."""

import subprocess
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2

from limbeck.runtime import wire_pb2

ROOT = Path(__file__).parent.parent


def test_wire_pb2_is_fresh(tmp_path: Path) -> None:
    (tmp_path / "limbeck").symlink_to(ROOT)
    out = tmp_path / "set"
    subprocess.run(
        [
            sys.executable, "-m", "grpc_tools.protoc", "-I", tmp_path,
            f"--descriptor_set_out={out}", tmp_path / "limbeck/runtime/wire.proto",
        ],
        check=True,
    )  # fmt: skip
    (compiled,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    committed = descriptor_pb2.FileDescriptorProto()
    wire_pb2.DESCRIPTOR.CopyToProto(committed)
    compiled.ClearField("source_code_info")
    for message in compiled.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert committed == compiled, "run: make wire"
