import { agree, type Check, hold } from '../check';
import { custom, itemsOf } from './played-agent';
import type { Answer, ServerStage } from './server-stage';

const WHY = '2, Errors';
const NOT_JSON = { 'content-type': 'application/json' };

/** @throws Unmet unless the answer is this error, in words that a person can use */
function refused(what: string, answer: Answer, expected: object): void {
  const error = answer.body.error as { code?: unknown; message?: unknown } | undefined;
  const seen = { status: answer.status, error };
  agree(what, seen, expected, 'Answer with the status and the code of the table.');
  const isSaid = typeof error?.message === 'string' && error.message.length > 8;
  hold(isSaid, `${what} to have a message`, seen, 'Say in the message what to do next.');
  const type = answer.headers.get('content-type') ?? '';
  hold(/^application\/json/.test(type), `${what} as JSON`, type, 'Give every error a JSON body.');
}

export const ANSWERS: readonly Check<ServerStage>[] = [
  {
    group: 'answers',
    name: 'a body that is not what it should be is malformed, and the message names the field',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('malformed');
      const producer = { id: agent.outbox.id, epoch: agent.outbox.epoch };
      const record = { seq: 1, ...agent.event(custom('x', {})) };
      const expected = { status: 400, error: { code: 'malformed' } };
      const bodies: [string, unknown, RegExp][] = [
        ['no producer', { records: [record] }, /producer/],
        ['an epoch of text', { producer: { ...producer, epoch: '5' }, records: [record] }, /epoch/],
        ['no records', { producer, records: [] }, /records/],
        ['a record without seq', { producer, records: [{ ...record, seq: undefined }] }, /seq/],
        ['a hole between two records', { producer, records: [record, { ...record, seq: 3 }] }, /seq/],
      ];
      for (const [what, body, names] of bodies) {
        const answer = await stage.post('/events', body);
        refused(what, answer, expected);
        hold(names.test(answer.text), `${what} to name its field`, answer.body, 'Name the field in the message.');
      }
      const headers = { ...stage.authorized, ...NOT_JSON };
      refused('text', await stage.send('/events', { method: 'POST', headers, body: '{"producer":' }), expected);
    },
  },
  {
    group: 'answers',
    name: 'a body in another encoding than gzip is refused as such',
    why: WHY,
    async run(stage) {
      const headers = { ...stage.authorized, ...NOT_JSON, 'content-encoding': 'br' };
      const answer = await stage.send('/events', { method: 'POST', headers, body: '{}' });
      refused('br', answer, { status: 415, error: { code: 'unsupported_encoding' } });
    },
  },
  {
    group: 'answers',
    name: 'what does not exist is not found, and a method that a route has not is not allowed',
    why: WHY,
    async run(stage) {
      const none = { status: 404, error: { code: 'not_found' } };
      refused('an unknown session', await stage.get(`/sessions/${stage.prefix}-nobody`), none);
      refused('an unknown route', await stage.get('/no/such/route'), none);
      const answer = await stage.post('/events', {}, 'PUT');
      refused('PUT /events', answer, { status: 405, error: { code: 'method_not_allowed' } });
      const allowed = answer.headers.get('allow') ?? '';
      hold(/\bPOST\b/.test(allowed), 'Allow to list POST', allowed, 'List the methods of the route in Allow.');
    },
  },
  {
    group: 'answers',
    name: 'a parameter that can’t be used is repeated in the answer',
    why: WHY,
    async run(stage) {
      const answer = await stage.get('/sessions?limit=none');
      refused('limit=none', answer, { status: 400, error: { code: 'invalid_argument' } });
      hold(answer.text.includes('limit'), 'the answer to name limit', answer.body, 'Repeat the parameter.');
    },
  },
  {
    group: 'answers',
    name: 'a request that is refused has stored nothing',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('nothing');
      const said = (seq: number) => ({ seq, ...agent.event(custom('interlude:notice', { text: `${seq}` })) });
      await agent.outbox.post([said(1)]);
      await agent.outbox.post([said(2), said(4)]);
      await agent.outbox.post([said(3)]);
      const turns = await agent.turns();
      agree('what is shown', turns.flatMap(itemsOf), ['notice 1'], 'Store a request whole, or nothing of it.');
    },
  },
  {
    group: 'answers',
    name: 'what is acknowledged can be read as soon as the answer is there',
    why: '3, Ingest',
    async run(stage) {
      const agent = stage.agent('read-back');
      const todo = 'Answer once rows and read models are committed, in one transaction.';
      for (let at = 1; at <= 10; at += 1) {
        const { position } = await agent.tell(custom('interlude:notice', { text: `${at}` }));
        const { body } = await stage.read(`${agent.path}/transcript`);
        const isThere = Number(body.position) >= Number(position);
        hold(isThere, `the transcript at ${position} or later`, body.position, todo);
        const [turn] = body.turns as Record<string, unknown>[];
        hold(itemsOf(turn).length === at, `${at} items`, itemsOf(turn), todo);
      }
    },
  },
  {
    group: 'answers',
    name: 'no answer but a stream may be kept by anybody on its way',
    why: '2, Common rules',
    async run(stage) {
      const agent = stage.agent('no-store');
      await agent.tell(custom('x', {}));
      const paths = ['/sessions', agent.path, `${agent.path}/transcript`, '/agents', '/inbox', '/no/such/route'];
      for (const path of paths) {
        const { headers } = await stage.get(path);
        const seen = headers.get('cache-control') ?? '';
        hold(/no-store/.test(seen), `no-store on ${path}`, seen, 'Send cache-control: no-store with every answer.');
      }
    },
  },
];
