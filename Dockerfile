# discreet in a container, from a wheel and the wheels that it needs: nothing is fetched while the image is built.
#   make wheels && docker build -t discreet . && docker run --rm -v "$PWD:/work" discreet demo
FROM python:3.12-slim
COPY dist/wheels /wheels
RUN python -m pip install --no-index --no-deps /wheels/*.whl && rm -rf /wheels \
 && useradd --create-home custodian
USER custodian
WORKDIR /work
ENTRYPOINT ["discreet"]
CMD ["--help"]
