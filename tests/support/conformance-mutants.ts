import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Group } from '@interlude/conformance/check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { checkRunner, checkServer, expectFailed, frontOf, PYTHON, type Tamper, withBody } from './conformance-runs';
import { type InProcessServer, inProcessServer } from './server-target';

/** Runners and servers that each break one rule, with the checks that must fail. */

/** Spent in full when a mutant never reacts. */
const TIMEOUT_MS = 20_000;
const [, source = ''] = PYTHON;

interface RunnerMutant {
  title: string;
  only: Group[];
  /** Replacements in runner.py. Each text occurs there exactly once. */
  changes: [string, string][];
  fails: string[];
}

const RUNNER_MUTANTS: RunnerMutant[] = [
  {
    title: 'executes a repeated command again',
    only: ['commands'],
    changes: [
      [
        'elif id in delivered: acknowledge(id, "delivered")',
        'elif id in delivered and acknowledge(id, "delivered"): pass',
      ],
      ['elif id not in pending:', 'else:'],
    ],
    fails: [
      'a repeated command is carried out once and acknowledged every time',
      'a command carried out before a kill is acknowledged again and not repeated',
    ],
  },
  {
    title: 'forgets executed commands when killed',
    only: ['commands'],
    changes: [['delivered = {id for record in records for id in record["begins"]}', 'delivered = set()']],
    fails: ['a command carried out before a kill is acknowledged again and not repeated'],
  },
  {
    title: 'acknowledges before the agent has the message',
    only: ['commands'],
    changes: [
      [
        'print(json.dumps(pending[id])',
        'acknowledge(id, "delivered"), time.sleep(15 if body["text"] == "say thanks" else 0), print(json.dumps(pending[id])',
      ],
    ],
    fails: ['a message is acknowledged as delivered once the agent has it'],
  },
  {
    title: 'ignores an unknown command',
    only: ['commands'],
    changes: [['if type != "message": acknowledge(', 'if type != "message": type in UNSUPPORTED and acknowledge(']],
    fails: ['a command of an unknown type is acknowledged as failed with a reason'],
  },
  {
    title: 'delivers a message without its attachments',
    only: ['commands'],
    changes: [['elif body.get("attachments"):', 'elif False:']],
    fails: ['a message with an unsupported attachment is refused and does not reach the agent'],
  },
  {
    title: 'reconnects after being fenced',
    only: ['commands'],
    changes: [['os._exit(1)  # another runner has taken over', 'break']],
    fails: ['a fenced runner neither reconnects nor acknowledges'],
  },
  {
    title: 'sends log lines unredacted',
    only: ['secrets'],
    changes: [['text, count = redact(text)', 'count = 0']],
    fails: ['no log line contains the token of the runner', 'a log line with a secret is redacted and marked'],
  },
  {
    title: 'passes its token to the agent',
    only: ['secrets'],
    changes: [['encoding="utf-8", env=env)', 'encoding="utf-8")']],
    fails: ['the agent gets no INTERLUDE_ variables'],
  },
  {
    title: 'sometimes sends an event late',
    only: ['order'],
    changes: [
      [
        'put("event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "role": "assistant", "delta": piece})',
        'threading.Timer(0.1 * (text == "3"), put, ["event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": piece}]).run() if text != "3" else threading.Timer(0.1, put, ["event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": piece}]).start()',
      ],
    ],
    fails: [
      'a hundred texts arrive once and in order',
      'records of interleaved turns and tasks arrive in the order of the agent',
    ],
  },
  {
    title: 'sends everything twice',
    only: ['order', 'outbox'],
    changes: [
      [
        'put("event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "role": "assistant", "delta": piece})',
        '[put("event", {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": piece}) for _ in range(2)]',
      ],
    ],
    fails: [
      'a hundred texts arrive once and in order',
      'everything arrives once after an outage, whatever the number of attempts',
      'records queued at a kill are sent by the next process',
      'records that a restored server has lost are sent again or declared lost',
      'no text or turn arrives twice after disconnects, retries and kills',
    ],
  },
  {
    title: 'keeps its outbox in memory only',
    only: ['outbox'],
    changes: [['file.write(json.dumps(records[-1]).encode() + b"\\n")', 'pass']],
    fails: ['records queued at a kill are sent by the next process'],
  },
  {
    title: 'changes resent records',
    only: ['outbox'],
    changes: [['else: time.sleep(wait)', 'else: time.sleep(wait), [one.update(tries=time.time()) for one in batch]']],
    fails: ['records are numbered from 1 without gaps, and a number keeps its record'],
  },
  {
    title: 'ignores Retry-After',
    only: ['answers'],
    changes: [['else: time.sleep(wait)', 'else: time.sleep(0.2)']],
    fails: ['the runner waits for Retry-After after 429 and 503'],
  },
  {
    title: 'continues under a fenced epoch',
    only: ['answers'],
    changes: [['os._exit(1)  # another outbox has written', 'time.sleep(0.1)']],
    fails: ['a fenced outbox sends nothing more in its epoch'],
  },
  {
    title: 'drops an oversized batch',
    only: ['answers'],
    changes: [
      [
        'elif status in (400, 413) and len(batch) > 1: most = len(batch) // 2',
        'elif status == 400 and len(batch) > 1: most = len(batch) // 2\n' +
          '        elif status == 413 and len(batch) > 1: records[sent:sent + len(batch)] = [' +
          '{**one, one["kind"]: None, "kind": "lost", "lost": {"count": 1, "reason": "x"}} for one in batch]; most = 1',
      ],
    ],
    fails: ['a request rejected as too large is split without loss'],
  },
  {
    title: 'treats the wake-up cause as a message',
    only: ['turns'],
    changes: [['start_turn(turn, {"turn": "between-run",', 'start_turn(turn, {"turn": "user",']],
    fails: ['a turn started by the agent is a between-run turn and names the task that caused it'],
  },
  {
    title: 'leaves work open after a kill',
    only: ['turns'],
    changes: [['if records: custom("session:ended", reason="its runner ended")', 'pass']],
    fails: [
      'an agent that crashes in a turn leaves no turn open, and accepts messages again',
      'work left open by a killed runner is closed before anything else is sent',
    ],
  },
  {
    title: 'omits task ends',
    only: ['tasks'],
    changes: [['status=status, exit_code=code)', 'status="completed")']],
    fails: ['a background task reports its start and its outcome'],
  },
  {
    title: 'sends one report after promising one every three seconds',
    only: ['liveness'],
    changes: [['due = time.monotonic() + 1\n', 'due = time.monotonic() + 3600\n']],
    fails: [
      'status records arrive at the promised interval',
      'a status record with an open turn names the turn that the events opened',
    ],
  },
  {
    title: 'sends a long text as one record',
    only: ['limits'],
    changes: [['(?s).{1,20000}', '(?s).+']],
    fails: [
      'ten million characters arrive complete, in records of at most 1 MiB that split no character',
      'no request exceeds 8 MiB or 10,000 records',
    ],
  },
  {
    title: 'reads the agent no faster than the server accepts records',
    only: ['never in the way'],
    changes: [
      [
        'for line in agent.stdout:',
        'for line in agent.stdout:\n    while post("/events", {"producer": {"id": "x", "epoch": 1}, "records": []})[0] != 200: time.sleep(0.2)',
      ],
    ],
    fails: [
      'the agent keeps working while the server is unreachable, and everything arrives afterwards',
      'a slow server does not block the agent',
    ],
  },
];

/** Runs the checks against a mutant of runner.py. */
async function expectRunnerFails({ only, changes, fails }: RunnerMutant): Promise<void> {
  let code = readFileSync(source, 'utf8');
  for (const [before, after] of changes) {
    if (code.split(before).length !== 2) throw new Error(`expected once in runner.py: ${before}`);
    code = code.replace(before, () => after);
  }
  const folder = mkdtempSync(join(tmpdir(), 'interlude-mutant-'));
  const file = join(folder, 'runner.py');
  writeFileSync(file, code);
  try {
    expectFailed(await checkRunner(['python3', file], { only, timeoutMs: TIMEOUT_MS }), fails);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface ServerMutant {
  title: string;
  only: Group[];
  tamper: Tamper;
  fails: string[];
}

const at = (request: Request) => `${request.method} ${new URL(request.url).pathname}`;
const isEvents = (request: Request) => at(request) === 'POST /api/v1/events';

const SERVER_MUTANTS: ServerMutant[] = [
  {
    title: 'counts duplicates as new',
    only: ['outbox'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      if (!isEvents(request) || response.status !== 200) return response;
      return await withBody(response, (body) => ({
        ...body,
        accepted: Number(body.accepted) + Number(body.duplicates),
        duplicates: 0,
      }));
    },
    fails: [
      'a repeated request counts as duplicates and is stored once',
      'only the new records of an overlapping request are stored',
      'a number keeps its first record',
    ],
  },
  {
    title: 'acknowledges dropped records',
    only: ['answers'],
    tamper: async (request, pass) => {
      if (!isEvents(request)) return await pass(request);
      const copy = request.clone();
      const response = await pass(request);
      const text = await copy.text();
      if (response.status !== 200 || !text.includes('read-back')) return response;
      return await withBody(response, (body) => ({ ...body, ackedSeq: 99, position: '999999999' }));
    },
    fails: ['acknowledged records are readable when the response arrives'],
  },
  {
    title: 'omits the reason from error responses',
    only: ['answers'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      return response.status === 400
        ? await withBody(response, () => ({ error: { code: 'malformed', message: 'Bad.' } }))
        : response;
    },
    fails: [
      'an invalid body is malformed, and the message names the field',
      'the response to an invalid parameter names it',
    ],
  },
  {
    title: 'allows caching of its responses',
    only: ['answers'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      const headers = new Headers(response.headers);
      headers.set('cache-control', 'max-age=60');
      return new Response(response.body, { status: response.status, headers });
    },
    fails: ['responses other than streams can’t be cached'],
  },
  {
    title: 'rejects a request because of one record',
    only: ['limits'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      const { rejected = [] } = isEvents(request) ? await response.clone().json() : {};
      if (rejected.length === 0) return response;
      return Response.json({ error: { code: 'malformed', message: 'One of them is.' } }, { status: 400 });
    },
    fails: [
      'a record over 1 MiB is quarantined and acknowledged, and later records are accepted',
      'a record of an unknown kind does not block later records',
      'an id of 256 characters is accepted, and one of 257 is refused',
    ],
  },
  {
    title: "uses the producer's value as the request digest",
    only: ['requests'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      if (!/\/transcript$/.test(new URL(request.url).pathname)) return response;
      return await withBody(response, (body) =>
        JSON.parse(JSON.stringify(body).replace(/"digest":"\w+"/g, '"digest":"forged"')),
      );
    },
    fails: [
      'the server computes the digest of a request, whatever the producer wrote',
      'a request is answered once, and the runner gets its digest',
      'an answer to an earlier request is refused with the current digest',
    ],
  },
  {
    title: 'forgets clientIds',
    only: ['commands'],
    tamper: async (request, pass) => {
      if (!/\/messages$/.test(at(request))) return await pass(request);
      const body = { ...(await request.json()), clientId: `${Math.random()}` };
      const { headers } = request;
      headers.delete('content-length');
      return await pass(new Request(request.url, { method: 'POST', headers, body: JSON.stringify(body) }));
    },
    fails: ['a repeated clientId gets the same response and one command, and another text is a conflict'],
  },
  {
    title: "drops runners' acknowledgements",
    only: ['commands'],
    tamper: async (request, pass) => {
      const [, id] = /\/commands\/([^/]+)\/ack$/.exec(new URL(request.url).pathname) ?? [];
      if (id === undefined) return await pass(request);
      const { state } = await request.json();
      return Response.json({ commandId: decodeURIComponent(id), state });
    },
    fails: [
      'a message is queued, then delivered when acknowledged, then seen when a turn names it',
      'a repeated acknowledgement is accepted, and the final state stays',
      'an unacknowledged command is repeated on the next stream under its id, and not afterwards',
      'the later of two runners of an agent wins, and the other is notified',
    ],
  },
  {
    title: 'answers unauthenticated requests',
    only: ['secrets'],
    tamper: async (request, pass) => {
      const isOpen = request.headers.get('authorization') === null && at(request) === 'GET /api/v1/agents';
      return isOpen ? Response.json({ agents: [] }) : await pass(request);
    },
    fails: ['every route, known or unknown, requires a valid credential'],
  },
  {
    title: 'repeats a token from the URL',
    only: ['secrets'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      return response.status === 401 ? await withBody(response, (body) => ({ ...body, asked: request.url })) : response;
    },
    fails: ['a token in a URL grants no access, and no response repeats it'],
  },
  {
    title: 'restarts a stream from the beginning',
    only: ['order'],
    tamper: async (request, pass) => {
      request.headers.delete('last-event-id');
      return await pass(request);
    },
    fails: ['an interrupted stream resumes after the last received event'],
  },
  {
    title: 'sends events twice',
    only: ['order'],
    tamper: async (request, pass) => {
      const response = await pass(request);
      if (response.body === null || !/^GET .*\/stream$/.test(at(request))) return response;
      let rest = '';
      const twice = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          const frames = (rest + new TextDecoder().decode(chunk)).split(/(?<=\n\n)/);
          rest = frames.at(-1)?.endsWith('\n\n') ? '' : (frames.pop() ?? '');
          const told = frames.map((frame) => (frame.startsWith('id: ') ? frame + frame : frame));
          controller.enqueue(new TextEncoder().encode(told.join('')));
        },
      });
      return new Response(response.body.pipeThrough(twice), { headers: response.headers });
    },
    fails: [
      'a stream has every event once, with ascending positions, while two outboxes write',
      'an interrupted stream resumes after the last received event',
      'a transcript folded from the stream equals the one loaded at the same position',
    ],
  },
];

/** Runs the checks against a server with altered requests and responses. */
async function expectServerFails(server: InProcessServer, { only, tamper, fails }: ServerMutant): Promise<void> {
  const front = await frontOf(server.fetch, tamper);
  try {
    const { results } = await checkServer({ url: front.url, token: server.token }, { only, timeoutMs: TIMEOUT_MS });
    expectFailed(results, fails);
  } finally {
    await front.close();
  }
}

/** Mutants whose checks take about a second. */
export const QUICK = new Set([
  'passes its token to the agent',
  'counts duplicates as new',
  'acknowledges dropped records',
  "uses the producer's value as the request digest",
  'answers unauthenticated requests',
]);

/** Runs the checks against the chosen mutants. */
export function describeConformanceMutants(isChosen: (title: string) => boolean): void {
  describe.concurrent('the runner checks', () => {
    test.each(RUNNER_MUTANTS.filter(({ title }) => isChosen(title)))('fail a runner that $title', expectRunnerFails);
  });

  describe.concurrent('the server checks', () => {
    let server: InProcessServer;
    beforeAll(async () => {
      server = await inProcessServer();
    });
    afterAll(() => server.close());

    test.each(SERVER_MUTANTS.filter(({ title }) => isChosen(title)))('fail a server that $title', (mutant) =>
      expectServerFails(server, mutant),
    );
  });
}
