# The image of the manifests beside this: the command `opscope`, for the host agent; and the payload,
# all that an observed process needs, in one directory, for each Python from 3.10 on. The default
# command copies the payload to /payload and ends.
#
#     docker build -f agent/deploy/attach-payload.Dockerfile -t registry.example.com/opscope:0.1.0 .
#
# What observes a program in any container whose /opt/opscope has been filled that way:
#     PYTHONPATH=/opt/opscope/site OPSCOPE_ATTACH=1
#
# Built on Debian 12 as here, it needs glibc 2.34 there (Debian 12, Ubuntu 22.04, RHEL 9). A program
# with an older one goes on unobserved; `opscope ps` says why.

FROM python:3.12-bookworm AS build
COPY . /source
# cffi's extension module is one for each version of Python; all else serves them all.
RUN pip wheel --no-cache-dir --wheel-dir /wheels /source \
 && for version in 3.10 3.11 3.12 3.13 3.14; do \
        pip download --no-cache-dir --no-deps --only-binary :all: --python-version "$version" \
            --dest /cffi "cffi>=2.0"; \
    done

FROM python:3.12-slim-bookworm AS opscope
COPY --from=build /wheels /wheels
COPY --from=build /cffi /cffi
RUN pip install --no-cache-dir --no-index --find-links /wheels opscope \
 && opscope install --payload /opt/opscope --cffi /cffi --python /usr/local/bin/python3 \
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
CMD ["cp", "-R", "/opt/opscope/.", "/payload/"]
