# acuse in an image that holds nothing else: the binary, certificates, time zones.
#   docker build -t acuse .
#   docker run -v acuse:/data -p 8080:8080 -p 127.0.0.1:8081:8081 acuse
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETARCH TARGETVARIANT
RUN CGO_ENABLED=0 GOOS=linux GOARCH=$TARGETARCH GOARM=${TARGETVARIANT#v} \
    go build -trimpath -ldflags='-s -w' -o /acuse . \
 && mkdir /data && cp "$(go env GOROOT)/lib/time/zoneinfo.zip" /zoneinfo.zip

FROM scratch
COPY --from=build /acuse /acuse
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /zoneinfo.zip /zoneinfo.zip
COPY --from=build --chown=65532:65532 --chmod=0700 /data /data
USER 65532:65532
# The config file is /data/acuse.yaml; the first start writes a commented one.
WORKDIR /data
VOLUME /data
ENV ACUSE_DATA_DIR=/data ACUSE_ADMIN_LISTEN=0.0.0.0:8081 ZONEINFO=/zoneinfo.zip
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s CMD ["/acuse", "health"]
ENTRYPOINT ["/acuse"]
CMD ["serve"]
