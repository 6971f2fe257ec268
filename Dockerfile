# dpaudit in a container, as a user without rights, at the versions and hashes of requirements/action.txt.
#
#   docker build --tag dpaudit .
#   mkdir -m 777 report    # for the user of the image
#   docker run --rm --network none --volume "$PWD:/audits" dpaudit run specs --no-ledger --report report
#
# A tag of an image can be moved: --build-arg PYTHON=python:3.12-slim-bookworm@sha256:... names the one you looked at.
ARG PYTHON=python:3.12-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /source
RUN python -m venv /opt/dpaudit
COPY requirements/action.txt requirements/action.txt
RUN /opt/dpaudit/bin/python -m pip install --no-cache-dir --require-hashes --requirement requirements/action.txt
COPY pyproject.toml README.md LICENSE ./
COPY dpaudit dpaudit
RUN /opt/dpaudit/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON}
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin auditor
COPY --from=build /opt/dpaudit /opt/dpaudit
ENV PATH="/opt/dpaudit/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /audits
ENTRYPOINT ["dpaudit"]
CMD ["--help"]
