import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Fields = Record<string, unknown>;

interface Entry {
  id: string;
  aggregate_id: string;
  seq: number;
  type: string;
  data: Fields;
}

const LASTING = /^(session\.(created|updated|deleted)|message\.(part\.)?(updated|removed))$/;
/** First id; ids ascend as OpenCode's do. */
const FIRST = 0x210000000000;

/**
 * A fake OpenCode server (opencode-ai 1.18.33) without an agent. The test scripts the agent's actions, sent as the real
 * server sends them.
 */
export class FakeOpencodeServer {
  /** Requests in order, such as `POST /session/ses_1/abort`. */
  readonly asked: { path: string; body: unknown }[] = [];
  readonly entries: Entry[] = [];
  readonly sessions = new Map<string, Fields>();
  readonly busy = new Set<string>();
  readonly permissions = new Map<string, Fields>();
  readonly questions = new Map<string, Fields>();
  /** Accepts requests and never responds. */
  isMute = false;
  /** Gateway response in place of the event stream. */
  streamStatus: number | null = null;
  /** Has no history, like servers before 1.18. */
  hasHistory = true;
  password: string | null = null;
  #ids = FIRST;
  #streams = new Set<ServerResponse>();
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  #port = 0;

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Simulates SIGKILL: stops listening and drops all running work. */
  async kill(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    this.#streams.clear();
    this.busy.clear();
    this.permissions.clear();
    this.questions.clear();
    await closed;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get readers(): number {
    return this.#streams.size;
  }

  /** Breaks the streams while the server keeps running. @param tail bytes written before the break */
  cut(tail = ''): void {
    for (const stream of this.#streams) {
      if (tail !== '') stream.write(tail);
      stream.destroy();
    }
    this.#streams.clear();
  }

  id(kind: 'ses' | 'msg' | 'prt' | 'evt' | 'per' | 'que'): string {
    this.#ids += 1;
    return `${kind}_${this.#ids.toString(16)}`;
  }

  tell(type: string, data: Fields): void {
    const id = this.id('evt');
    const session = String(data.sessionID ?? '');
    const directory = this.sessions.get(session)?.directory ?? '/work';
    this.write({ directory, payload: { id, type, properties: data } });
    if (!LASTING.test(type)) return;
    const seq = this.entries.filter((entry) => entry.aggregate_id === session).length;
    this.entries.push({ id, aggregate_id: session, seq, type: `${type}.1`, data });
    const syncEvent = { id, aggregateID: session, seq, type: `${type}.1`, data };
    this.write({ directory, payload: { id, type: 'sync', syncEvent } });
  }

  write(frame: unknown): void {
    for (const stream of this.#streams)
      stream.write(`data: ${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n\n`);
  }

  session(info: Fields = {}): string {
    const id = this.id('ses');
    const time = { created: Date.now(), updated: Date.now() };
    this.sessions.set(id, { id, directory: '/work', title: 'New session - now', time, ...info });
    this.tell('session.created', { sessionID: id, info: this.sessions.get(id) });
    return id;
  }

  /** @returns the message's id */
  user(session: string, text: string, part: Fields = {}): string {
    const id = this.id('msg');
    this.tell('message.updated', {
      sessionID: session,
      info: { id, sessionID: session, role: 'user', time: { created: Date.now() } },
    });
    this.part(session, id, { type: 'text', text, ...part });
    return id;
  }

  /** @returns the part's id */
  part(session: string, message: string, part: Fields): string {
    const id = typeof part.id === 'string' ? part.id : this.id('prt');
    this.tell('message.part.updated', {
      sessionID: session,
      part: { ...part, id, sessionID: session, messageID: message },
      time: Date.now(),
    });
    return id;
  }

  /** Starts an answer. @returns the message's id */
  begin(session: string, parent: string): string {
    this.busy.add(session);
    this.tell('session.status', { sessionID: session, status: { type: 'busy' } });
    return this.message(session, this.id('msg'), parent, {});
  }

  message(session: string, id: string, parent: string, info: Fields): string {
    const time = { created: Date.now(), ...(info.finish || info.error ? { completed: Date.now() } : {}) };
    this.tell('message.updated', {
      sessionID: session,
      info: { id, sessionID: session, role: 'assistant', parentID: parent, time, ...info },
    });
    return id;
  }

  /** Streams a text word by word. @returns the part's id */
  say(session: string, message: string, text: string): string {
    const id = this.part(session, message, { type: 'text', text: '', time: { start: 1 } });
    this.delta(session, message, id, text);
    this.part(session, message, { id, type: 'text', text, time: { start: 1, end: 2 } });
    return id;
  }

  delta(session: string, message: string, partID: string, delta: string): void {
    this.tell('message.part.delta', { sessionID: session, messageID: message, partID, field: 'text', delta });
  }

  /** Completes the answer; the session becomes idle. */
  end(session: string, message: string, parent: string, info: Fields = { finish: 'stop' }): void {
    this.message(session, message, parent, info);
    this.busy.delete(session);
    this.tell('session.status', { sessionID: session, status: { type: 'idle' } });
    this.tell('session.idle', { sessionID: session });
  }

  /** Runs a complete turn. @returns the id of the answered message */
  turn(session: string, asked: string, answer: string): string {
    const parent = this.user(session, asked);
    const message = this.begin(session, parent);
    this.say(session, message, answer);
    this.end(session, message, parent);
    return parent;
  }

  ask(session: string, command: string): string {
    const id = this.id('per');
    const asked = {
      id,
      sessionID: session,
      permission: 'bash',
      patterns: [command],
      metadata: { command },
      always: ['*'],
    };
    this.permissions.set(id, asked);
    this.tell('permission.asked', asked);
    return id;
  }

  question(session: string, questions: Fields[]): string {
    const id = this.id('que');
    const asked = { id, sessionID: session, questions };
    this.questions.set(id, asked);
    this.tell('question.asked', asked);
    return id;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = (await request.toArray()).join('');
    const { pathname: path } = new URL(request.url ?? '/', this.url);
    if (this.isMute) return;
    const basic = `Basic ${Buffer.from(`opencode:${this.password}`).toString('base64')}`;
    if (this.password !== null && request.headers.authorization !== basic) {
      response.writeHead(401).end();
      return;
    }
    if (path === '/global/event' && this.streamStatus !== null) {
      response.writeHead(this.streamStatus).end();
      return;
    }
    if (path === '/global/event') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      response.write(
        `data: ${JSON.stringify({ payload: { id: this.id('evt'), type: 'server.connected', properties: {} } })}\n\n`,
      );
      this.#streams.add(response);
      response.on('close', () => this.#streams.delete(response));
      return;
    }
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    if (request.method === 'POST') this.asked.push({ path, body });
    const [status, answer] = this.#answer(path, fields(body));
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(answer === undefined ? '' : JSON.stringify(answer));
  }

  #answer(path: string, body: Fields): [number, unknown?] {
    const [, name = '', id = '', verb = ''] = path.split('/');
    const session = this.sessions.get(id);
    if (path === '/global/health') return [200, { healthy: true, version: '1.18.33' }];
    if (path === '/experimental/session') return [200, [...this.sessions.values()]];
    if (path === '/session/status')
      return [200, Object.fromEntries([...this.busy].map((one) => [one, { type: 'busy' }]))];
    if (path === '/sync/history')
      return this.hasHistory ? [200, this.#history(body)] : [404, { message: 'no such route' }];
    if (path === '/session') return [200, this.sessions.get(this.session())];
    if (path === '/permission') return [200, [...this.permissions.values()]];
    if (path === '/question') return [200, [...this.questions.values()]];
    if (name === 'permission') return this.#reply(this.permissions, 'permission', id, { reply: body.reply });
    if (name === 'question') return this.#reply(this.questions, 'question', id, { answers: body.answers });
    if (session === undefined) return [404, { message: 'no such session' }];
    if (verb === '') return [200, session];
    if (verb === 'message') return [200, this.#messages(id)];
    if (verb === 'abort') return [200, true];
    const [part, ...parts] = body.parts as Fields[];
    const message = this.user(id, String(part?.text), { ...part });
    for (const more of parts) this.part(id, message, more);
    return [204];
  }

  #reply(open: Map<string, Fields>, kind: string, id: string, said: Fields): [number, unknown?] {
    const asked = open.get(id);
    if (asked === undefined) return [404, { message: 'not found' }];
    open.delete(id);
    this.tell(`${kind}.replied`, { sessionID: asked.sessionID, requestID: id, ...said });
    return [200, true];
  }

  #history(after: Fields): Entry[] {
    return this.entries
      .filter(({ aggregate_id: id, seq }) => !Object.hasOwn(after, id) || seq > Number(after[id]))
      .toSorted((a, b) => a.seq - b.seq);
  }

  #messages(session: string): { info: unknown; parts: unknown[] }[] {
    const messages = new Map<string, { info: unknown; parts: Map<string, unknown> }>();
    for (const { type, data } of this.entries.filter((entry) => entry.aggregate_id === session)) {
      const { info, part } = data as { info?: Fields; part?: Fields };
      const id = String(info?.id ?? part?.messageID);
      const message = messages.get(id) ?? { info, parts: new Map() };
      if (type === 'message.updated.1') messages.set(id, { ...message, info });
      else if (type === 'message.part.updated.1') message.parts.set(String(part?.id), part);
    }
    return [...messages.values()].map(({ info, parts }) => ({ info, parts: [...parts.values()] }));
  }
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
