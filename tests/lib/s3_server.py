#!/usr/bin/python3
"""A server of S3 (moto) for tests, which verifies signatures.

Usage: s3_server.py MODULES DIRECTORY

Puts the files of DIRECTORY into the bucket `channels`. Prints its port and a key's id and secret, and serves on 127.0.0.1
until its standard input is closed.
"""
import os
import sys
from pathlib import Path

modules, directory = sys.argv[1:]
sys.path.insert(0, modules)
files = [file for file in Path(directory).rglob("*") if file.is_file()]
# So many requests need no signature: those below.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(4 + len(files))
for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    os.environ[name] = "nobody"

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
place = {"endpoint_url": f"http://{host}:{port}", "region_name": "us-east-1"}
iam = boto3.client("iam", **place)
iam.create_user(UserName="tester")
iam.put_user_policy(UserName="tester", PolicyName="all",
                    PolicyDocument='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}')
key = iam.create_access_key(UserName="tester")["AccessKey"]
s3 = boto3.client("s3", **place)
s3.create_bucket(Bucket="channels")
for file in files:
    s3.put_object(Bucket="channels", Key=str(file.relative_to(directory)), Body=file.read_bytes())
print(port, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
sys.stdin.read()
