# The image of the manifests beside this: the command `opscope`, for the host agent; and the payload,
# all that an observed process needs, in one directory, for each Python from 3.10 on. The default
# command copies the payload to /payload and ends. It replaces files and never writes into one: what is
# mapped by a program that runs, and was cut short meanwhile, would end that program.
#
#     docker build -f agent/deploy/attach-payload.Dockerfile -t registry.example.com/opscope:0.1.0 .
#
# What observes a program in any container whose /opt/opscope has been filled that way:
#     PYTHONPATH=/opt/opscope/site OPSCOPE_ATTACH=1
#
# The payload works on x86-64 and arm64 with glibc 2.27 or later (Debian 10, Ubuntu 18.04, RHEL 8). A
# program with an older one, or with musl, goes on unobserved; `opscope ps` says why.

# On x86-64, as `make wheels` builds for arm64 there, not the other way round.
FROM --platform=linux/amd64 python:3.12-bookworm AS build
COPY . /source
# cffi's extension module is one for each version of Python; all else serves them all.
RUN apt-get update && make -C /source wheels PYTHONS= \
 && for machine in x86_64 aarch64; do for version in 3.10 3.11 3.12 3.13 3.14; do \
        pip download --no-cache-dir --no-deps --only-binary :all: --python-version "$version" \
            --platform "manylinux2014_$machine" --dest /cffi "cffi>=2.0"; \
    done; done

FROM python:3.12-slim-bookworm AS opscope
COPY --from=build /source/dist /wheels
COPY --from=build /cffi /cffi
# The host agent with OpenTelemetry; the payload takes nothing of these extras.
RUN pip install --no-cache-dir "$(echo /wheels/*-manylinux_*_$(uname -m).whl)[agent,otlp]" \
 && wheels=$(printf -- '--wheel %s ' /wheels/*-manylinux_*.whl) \
 && opscope install --payload /opt/opscope --cffi /cffi $wheels --python /usr/local/bin/python3 \
 && rm -rf /wheels /cffi

# Where a program may not write, each of its starts would compile what has no bytecode: 5 ms, and 50
# more once it imports NumPy.
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

FROM opscope
COPY --from=for-3.14 /opt/opscope /opt/opscope
USER 65534:65534
CMD ["cp", "-R", "--remove-destination", "/opt/opscope/.", "/payload/"]
