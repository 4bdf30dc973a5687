# discreet in a container, from a wheel and the wheels that it needs: nothing is fetched while the image is built.
# Wheels are for the Python that collected them, so the image must have the same:
#   make wheels && docker build --build-arg PYTHON="$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" -t discreet .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" discreet demo
ARG PYTHON=3.12
FROM python:${PYTHON}-slim
RUN --mount=type=bind,source=dist/wheels,target=/wheels python -m pip install --no-cache-dir --no-index --no-deps /wheels/*.whl
RUN useradd --create-home custodian
USER custodian
# Whoever it runs as may have no home: compiled code is kept where everybody may write.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["discreet"]
CMD ["--help"]
