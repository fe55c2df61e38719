import { requestDigest } from '@interlude/protocol/request-digest';
import { type PendingRequest, PendingRequests, type RequestAnswer } from '@interlude/runner/host/pending-requests';
import { expect, test } from 'vitest';

const INPUT = { command: 'ls' };
const OPTIONS = [
  { id: 'once', label: 'Allow once', kind: 'allow' },
  { id: 'always', label: 'Always allow', kind: 'allow', isLasting: true },
  { id: 'no', label: 'Reject', kind: 'deny' },
] as const;

function held(request: Partial<PendingRequest> = {}) {
  const given: RequestAnswer[] = [];
  const requests = new PendingRequests();
  let failure: string | null = null;
  requests.hold({
    sessionId: 's',
    requestId: 'q1',
    kind: 'permission',
    tool: 'shell',
    input: INPUT,
    deliver(answer) {
      given.push(answer);
      return failure;
    },
    ...request,
  });
  const { options } = request;
  const digest = requestDigest({
    sessionId: 's',
    requestId: 'q1',
    tool: 'shell',
    input: INPUT,
    options,
    position: '7',
  });
  const about = { requestId: 'q1', digest, openedPosition: '7' };
  const common = { id: 'c1', sessionId: 's', createdAt: 1, expiresAt: 2 } as const;
  return {
    given,
    requests,
    fails: (reason: string | null) => {
      failure = reason;
    },
    decide: (said: object) =>
      requests.answer({ ...common, type: 'permission.decision', body: { ...about, behavior: 'allow', ...said } }),
    reply: (answers: Record<string, string>) =>
      requests.answer({ ...common, type: 'question.answer', body: { ...about, answers } }),
  };
}

test('delivers an answer once and refuses a second one', async () => {
  const { given, decide } = held();
  expect(await decide({})).toBeNull();
  expect(await decide({})).toBe('it was already answered');
  expect(given).toEqual([{ kind: 'permission', isAllowed: true, isLasting: false }]);
});

test('refuses the answer to an earlier request with the same content', async () => {
  const { given, requests, decide } = held();
  expect(await decide({})).toBeNull();
  const asked = { sessionId: 's', requestId: 'q1', tool: 'shell', input: INPUT };
  requests.hold({
    ...asked,
    kind: 'permission',
    deliver(answer) {
      given.push(answer);
      return null;
    },
  });
  expect(await decide({})).toBe('it was already answered');
  expect(given).toHaveLength(1);
  expect(await decide({ digest: requestDigest({ ...asked, position: '8' }), openedPosition: '8' })).toBeNull();
  expect(given).toHaveLength(2);
});

test('accepts a second attempt only after the first one failed', async () => {
  let fail = (_: string | null) => {};
  const { given, requests, decide } = held({
    deliver: () =>
      new Promise<string | null>((resolve) => {
        fail = resolve;
      }),
  });
  const first = decide({});
  requests.hold({
    sessionId: 's',
    requestId: 'q1',
    kind: 'permission',
    tool: 'shell',
    input: INPUT,
    deliver(answer) {
      given.push(answer);
      return null;
    },
  });
  expect(await decide({})).toBe('it was already answered');
  fail('the agent has exited');
  expect(await first).toBe('the agent has exited');
  expect(await decide({})).toBeNull();
  expect(given).toHaveLength(1);
});

test('delivers the first of two concurrent answers', async () => {
  const { given, requests, decide } = held({
    deliver: async (answer) => {
      given.push(answer);
      await new Promise((resolve) => setImmediate(resolve));
      return null;
    },
  });
  const both = await Promise.all([decide({}), decide({})]);
  expect(both.filter((refusal) => refusal === null)).toHaveLength(1);
  expect(given).toHaveLength(1);
  expect(requests).toBeDefined();
});

test('refuses an answer with another digest', async () => {
  const { given, decide } = held({ input: { command: 'ls -a' } });
  expect(await decide({})).toMatch(/request has changed since it was answered/);
  expect(given).toEqual([]);
});

test('prefers the matching option that does not last', async () => {
  const named = held({ options: OPTIONS });
  expect(await named.decide({ optionId: 'always' })).toBeNull();
  expect(named.given).toEqual([{ kind: 'option', optionId: 'always' }]);
  const once = held({ options: OPTIONS });
  await once.decide({});
  expect(once.given).toEqual([{ kind: 'option', optionId: 'once' }]);
  const lasting = held({ options: OPTIONS });
  await lasting.decide({ remember: true });
  expect(lasting.given).toEqual([{ kind: 'option', optionId: 'always' }]);
  const denied = held({ options: OPTIONS });
  await denied.decide({ behavior: 'deny', message: 'no' });
  expect(denied.given).toEqual([{ kind: 'option', optionId: 'no', message: 'no' }]);
});

test('refuses an option that is unknown or contradicts the decision', async () => {
  const { given, decide } = held({ options: OPTIONS });
  expect(await decide({ optionId: 'never' })).toBe('the agent does not offer "never"; choose one of its options');
  expect(await decide({ optionId: 'no' })).toBe('"Reject" can’t allow this');
  expect(given).toEqual([]);
});

test('does not choose a lasting option by itself', async () => {
  const { given, decide } = held({ options: [OPTIONS[1], OPTIONS[2]] });
  expect(await decide({})).toMatch(/choose one of its options/);
  expect(given).toEqual([]);
});

test('keeps the request open when delivery fails', async () => {
  const { fails, decide } = held();
  fails('the agent is restarting');
  expect(await decide({})).toBe('the agent is restarting');
  fails(null);
  expect(await decide({})).toBeNull();
});

test('refuses a decision for a question and answers for a permission', async () => {
  const question = held({ kind: 'question' });
  expect(await question.decide({})).toMatch(/this is a question/);
  expect(await question.reply({ Colour: 'Blue' })).toBeNull();
  const permission = held();
  expect(await permission.reply({ Colour: 'Blue' })).toMatch(/this is a permission/);
});

test('stays released when its answer fails afterwards', async () => {
  let fail: (reason: string) => void = () => undefined;
  const onItsWay = new Promise<string>((resolve) => {
    fail = resolve;
  });
  const { requests, decide } = held({ deliver: () => onItsWay });
  const first = decide({});
  requests.clear();
  fail('the agent has exited');
  expect(await first).toBe('the agent has exited');
  expect(await decide({})).toBe('the agent no longer waits for this');
});

test('keeps the request open when delivery throws', async () => {
  let throws = true;
  const { decide } = held({
    deliver() {
      if (throws) throw new Error('broken');
      return null;
    },
  });
  await expect(decide({})).rejects.toThrow('broken');
  throws = false;
  expect(await decide({})).toBeNull();
});
