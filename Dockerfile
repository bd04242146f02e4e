# `lookhops serve` in a container: docs/install.md says how to run it. No image has been built of this
# file yet; its lines were followed by hand.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.13-slim
# RDKit draws with these.
RUN apt-get update && apt-get install --yes --no-install-recommends libxrender1 libxext6 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN wheel=$(ls /wheels/*.whl) && pip install --no-cache-dir "$wheel[serve]" && rm -r /wheels
RUN useradd --create-home lookhops
USER lookhops
EXPOSE 8000
# Folders of models are mounted at /models, to be read only. A token is made up and printed, unless
# --token-file names one.
ENTRYPOINT ["lookhops", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/models/model"]
