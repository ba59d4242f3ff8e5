# The image that the manifests in this folder use. It contains the command `opscope`, for the host
# agent, and the payload: one directory with everything that an observed process needs, for each Python
# from 3.10 on. The default command copies the payload to /payload and ends. It replaces files and
# never writes into existing ones: truncating a file that a running program has mapped would crash it.
#
#     docker build -f agent/deploy/attach-payload.Dockerfile -t registry.example.com/opscope:0.1.0 \
#         --build-arg REVISION="$(git rev-parse HEAD)" .
#
# The revision is in the image's labels, and in the agent's opscope_build_info.
# These variables observe a program in any container with the payload at /opt/opscope:
#     PYTHONPATH=/opt/opscope/site OPSCOPE_ATTACH=1
#
# The payload works on x86-64 and arm64 with glibc 2.27 or later (Debian 10, Ubuntu 18.04, RHEL 8). A
# program with an older one, or with musl, runs unobserved; `opscope ps` shows the reason.

# On x86-64, because `make wheels` cross-builds for arm64 only from there.
FROM --platform=linux/amd64 python:3.12-bookworm AS build
COPY . /source
# Each version of Python needs its own extension module of cffi; the rest serves all versions.
RUN apt-get update && make -C /source wheels PYTHONS= \
 && for machine in x86_64 aarch64; do for version in 3.10 3.11 3.12 3.13 3.14; do \
        pip download --no-cache-dir --no-deps --only-binary :all: --python-version "$version" \
            --platform "manylinux2014_$machine" --dest /cffi "cffi>=2.0"; \
    done; done

# The host agent with OpenTelemetry, in an environment of its own without pip and setuptools; the
# payload contains none of these extras. What nothing imports there is removed: NumPy's tests, f2py,
# type stubs and headers. That leaves 115 MB of 161; the largest are NumPy with OpenBLAS (60), gRPC
# (18) and Opscope (14). The bytecode stays: 21 MB, but the file system is read-only at run time.
FROM python:3.12-slim-bookworm AS opscope
COPY --from=build /source/dist /wheels
COPY --from=build /cffi /cffi
RUN python -m venv --without-pip /opt/agent \
 && pip --python /opt/agent/bin/python install --no-cache-dir \
        "$(echo /wheels/*-manylinux_*_$(uname -m).whl)[agent,otlp]" \
 && cd /opt/agent/lib/python3.12/site-packages \
 && find . -type d -name tests -prune -exec rm -rf {} + \
 && find . -type f \( -name "*.pyi" -o -name "*.pxd" -o -name "*.a" -o -name "*.h" \) -delete \
 && rm -rf numpy/f2py \
 && wheels=$(printf -- '--wheel %s ' /wheels/*-manylinux_*.whl) \
 && /opt/agent/bin/opscope install --payload /opt/opscope --cffi /cffi $wheels --python /usr/local/bin/python3
# .dockerignore leaves out .git, so the agent gets its revision here.
ARG REVISION
RUN echo "$REVISION" > "$(echo /opt/agent/lib/python3.12/site-packages/opscope-*.dist-info)/REVISION"

# Without bytecode, a program that cannot write here would compile the modules at each start: 5 ms,
# and 50 ms more when it imports NumPy.
FROM python:3.10-slim-bookworm AS for-3.10
COPY --from=opscope /opt/opscope /opt/opscope
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/opscope
FROM python:3.11-slim-bookworm AS for-3.11
COPY --from=for-3.10 /opt/opscope /opt/opscope
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/opscope
FROM python:3.13-slim-bookworm AS for-3.13
COPY --from=for-3.11 /opt/opscope /opt/opscope
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/opscope
FROM python:3.14-slim-bookworm AS for-3.14
COPY --from=for-3.13 /opt/opscope /opt/opscope
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/opscope

# Wheels and earlier copies of the payload stay behind in the stages above. The user is nobody; the
# agent of a whole host runs as root, because the manifest says so.
FROM python:3.12-slim-bookworm
COPY --from=opscope /opt/agent /opt/agent
COPY --from=for-3.14 /opt/opscope /opt/opscope
ENV PATH=/opt/agent/bin:$PATH
ARG REVISION
LABEL org.opencontainers.image.title="Opscope" \
      org.opencontainers.image.description="Always-on, fleet-wide operator observability for Python numerics" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION"
USER 65534:65534
CMD ["cp", "-R", "--remove-destination", "/opt/opscope/.", "/payload/"]
