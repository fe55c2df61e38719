import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withDeadline } from './timeouts';

interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Record<string, unknown>;
  links: { traceId: string; spanId: string; attributes: Record<string, unknown> }[];
  status: { code?: number };
}

interface KeyValue {
  key: string;
  value: Record<string, unknown>;
}

type SentSpan = Omit<CollectedSpan, 'attributes' | 'links'> & {
  attributes: KeyValue[];
  links: { traceId: string; spanId: string; attributes: KeyValue[] }[];
};

/** An OTLP receiver (HTTP, JSON). Rejects data that violates the protocol. */
export class TraceCollector {
  readonly url: string;
  readonly spans: CollectedSpan[] = [];
  readonly resources: Record<string, unknown>[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  readonly faults: string[] = [];
  /** Raw request bodies. */
  readonly bodies: string[] = [];
  /** Statuses of the next responses before it accepts data; 0: never responds. */
  readonly refusals: number[] = [];
  readonly #waiters = new Set<() => void>();
  readonly #close: () => Promise<void>;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
  }

  static async start(): Promise<TraceCollector> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const status = collector.#take(request.url ?? '', request.headers, Buffer.concat(chunks).toString());
        if (status === 0) return;
        response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const collector = new TraceCollector(`http://127.0.0.1:${port}`, async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return collector;
  }

  /** Resolves with the spans so far once each name occurs. */
  async named(...names: readonly string[]): Promise<CollectedSpan[]> {
    const missing = () => names.filter((name) => !this.spans.some((span) => span.name === name));
    const wait = async () => {
      while (missing().length > 0) await new Promise<void>((resolve) => this.#waiters.add(resolve));
    };
    await withDeadline(() => `no span ${missing().join(', ')} among ${this.spans.map(({ name }) => name)}`, wait());
    return this.spans;
  }

  close(): Promise<void> {
    return this.#close();
  }

  #take(path: string, headers: IncomingHttpHeaders, body: string): number {
    this.headers.push(headers);
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return refusal;
    if (path !== '/v1/traces' || headers['content-type'] !== 'application/json') {
      this.faults.push(`${path} ${headers['content-type']}`);
      return 400;
    }
    this.bodies.push(body);
    for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
      this.resources.push(fieldsOf(resource.attributes));
      for (const { spans } of scopeSpans) for (const span of spans) this.#collect(span);
    }
    for (const notify of this.#waiters) notify();
    this.#waiters.clear();
    return 200;
  }

  #collect(span: SentSpan): void {
    const isTime = (text: unknown) => typeof text === 'string' && /^\d{19}$/.test(text);
    const ids = [span.traceId.length, span.spanId.length, ...span.links.map((link) => link.traceId.length)];
    const isHex = [span.traceId, span.spanId, span.parentSpanId ?? '0'].every((id) => /^[0-9a-f]+$/.test(id));
    const isWhole = isTime(span.startTimeUnixNano) && isTime(span.endTimeUnixNano) && span.name !== '';
    const isForward = BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano);
    if (!isHex || !isWhole || !isForward || ids[0] !== 32 || ids[1] !== 16) this.faults.push(JSON.stringify(span));
    const links = span.links.map((link) => ({ ...link, attributes: fieldsOf(link.attributes) }));
    this.spans.push({ ...span, attributes: fieldsOf(span.attributes), links });
  }
}

function fieldsOf(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [[type, raw] = ['nothing', null]] = Object.entries(value);
      return [key, type === 'intValue' ? Number(raw) : raw];
    }),
  );
}
