import { randomUUID } from 'node:crypto';
import type { AgentDetail, RequestItem } from '@interlude/protocol/read-models';
import { describe, expect, test } from 'vitest';
import { scriptedTerminals } from '../support/terminal-companion';

/** Permissions, questions and plans of a terminal, answered in the dashboard through the waiting hook. */

const { atWork, read, turnsOf, texts, post, eventually } = scriptedTerminals();

/** A call as in the transcript, and its input as the hook receives it, if different. */
interface AskedCall {
  tool: string;
  input: object;
  asked?: object;
}

const CLEAN: AskedCall = { tool: 'Bash', input: { command: 'rm -r build', description: 'Clean' } };

/** A terminal with a request. @param within the hook's timeout in seconds; 0: installed without --permissions */
async function asking(within = 30, { tool, input, asked } = CLEAN) {
  const agentId = randomUUID();
  const one = await atWork(agentId);
  const { sessionId, hook, say } = one;
  const id = `toolu_${randomUUID()}`;
  const call = { type: 'tool_use', id, name: tool, input };
  say({ type: 'assistant', message: { id: randomUUID(), stop_reason: 'tool_use', content: [call] } });
  const suggestions = [
    { type: 'addRules', rules: [{ toolName: 'Bash', ruleContent: 'rm:*' }], destination: 'session' },
  ];
  const about = { tool_name: tool, tool_input: asked ?? input, permission_suggestions: suggestions };
  const printed = hook('PermissionRequest', about, within);
  const request = async () =>
    (await turnsOf(sessionId))
      .flatMap(({ items }) => items)
      .find((item): item is RequestItem => item.kind === 'request' && item.id === id);
  const opened = await eventually(request);
  const supportedCommands = async () =>
    ((await read(`/agents/${agentId}`)) as AgentDetail).agent.status?.takes as string[];
  if (within > 0) await eventually(async () => (await supportedCommands()).includes('permission.decision'));
  /** The tool call's result. */
  const returned = (isDenied = false) => {
    const content = [{ type: 'tool_result', tool_use_id: id, content: 'ok', is_error: isDenied }];
    const permissionDecision = { decision: isDenied ? 'reject' : 'accept', source: 'user_temporary' };
    say({ type: 'user', message: { role: 'user', content }, permissionDecision });
  };
  const answer = (more: object, status?: number) =>
    post(`/sessions/${sessionId}/requests/${id}`, { clientId: randomUUID(), ...more }, status);
  return { ...one, id, suggestions, printed, request, opened, supportedCommands, returned, answer };
}

const decisionIn = (printed: string) => JSON.parse(printed).hookSpecificOutput;

describe('a permission with a waiting hook', () => {
  test('is allowed in the dashboard, which is recorded before the tool runs', async () => {
    const { answer, printed, request, opened, supportedCommands } = await asking();
    expect(opened).toMatchObject({ outcome: null, title: 'Use Bash' });
    expect(opened.expiresAt).toBeGreaterThan(Date.now() + 20_000);
    await answer({ behavior: 'allow', digest: opened.digest });
    expect(decisionIn(await printed)).toEqual({ hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } });
    await eventually(async () => (await request())?.outcome === 'allowed');
    await eventually(async () => !(await supportedCommands()).includes('permission.decision'));
  });

  test('keeps the person’s reason for denying it when the terminal reports the denial as well', async () => {
    const { sessionId, answer, printed, request, returned, assistant } = await asking();
    await answer({ behavior: 'deny', message: 'Not that folder.' });
    expect(decisionIn(await printed).decision).toEqual({ behavior: 'deny', message: 'Not that folder.' });
    await eventually(async () => (await request())?.outcome === 'denied');
    returned(true);
    assistant('Then I leave it.');
    await eventually(async () => texts(await turnsOf(sessionId)).includes('Then I leave it.'));
    expect(await request()).toMatchObject({ outcome: 'denied', message: 'Not that folder.' });
  });

  test('is not requested again when the person remembers it with the terminal’s suggested rule', async () => {
    const { answer, printed, suggestions } = await asking();
    await answer({ behavior: 'allow', remember: true });
    expect(decisionIn(await printed).decision).toEqual({ behavior: 'allow', updatedPermissions: suggestions });
  });

  test('is resolved in the dashboard when it was answered in the terminal', async () => {
    const { answer, printed, request, returned } = await asking();
    returned();
    expect(await printed).toBe('');
    await eventually(async () => (await request())?.outcome === 'allowed');
    await answer({ behavior: 'deny' }, 409);
  });

  test('a permission falls back to the terminal only when nobody answered in time, and stays open there', async () => {
    const { printed, request, supportedCommands, returned } = await asking(3);
    expect(await printed).toBe('');
    const left = await eventually(async () => {
      const now = await request();
      return now?.expiresAt === null && now;
    });
    expect(left.outcome).toBeNull();
    await eventually(async () => !(await supportedCommands()).includes('permission.decision'));
    returned();
    await eventually(async () => (await request())?.outcome === 'allowed');
  });

  test('falls back to the terminal after its companion was restarted', async () => {
    const { printed, request, disconnect, connect } = await asking();
    const cut = printed.then(
      (output) => output,
      () => '',
    );
    await disconnect();
    expect(await cut).toBe('');
    await connect();
    await eventually(async () => (await request())?.expiresAt === null);
    expect(await request()).toMatchObject({ outcome: null });
  });

  test('refuses an answer with another input than the one shown', async () => {
    const { answer, printed, opened, returned, request } = await asking();
    const other = `${opened.digest?.slice(0, -1)}${opened.digest?.endsWith('0') ? '1' : '0'}`;
    await answer({ behavior: 'allow', digest: other }, 409);
    expect((await request())?.outcome).toBeNull();
    returned();
    expect(await printed).toBe('');
  });
});

test('a permission without a waiting hook is answered in the terminal only', async () => {
  const { printed, opened, supportedCommands } = await asking(0);
  expect(await printed).toBe('');
  expect(opened).toMatchObject({ expiresAt: null, title: 'Use Bash: answer it in the terminal' });
  expect(await supportedCommands()).not.toContain('permission.decision');
});

const QUESTION: AskedCall = {
  tool: 'AskUserQuestion',
  // As the model wrote it. The hook receives it in schema order with defaults.
  input: { questions: [{ options: [{ label: 'SQLite' }, { label: 'Postgres' }], question: 'Which database?' }] },
  asked: {
    questions: [
      { question: 'Which database?', options: [{ label: 'SQLite' }, { label: 'Postgres' }], multiSelect: false },
    ],
  },
};

describe('a question with a waiting hook', () => {
  test('is answered in the dashboard, in the format of the terminal', async () => {
    const { opened, answer, printed, request, supportedCommands } = await asking(30, QUESTION);
    expect(opened).toMatchObject({ requestKind: 'question', title: 'Which database?', outcome: null });
    expect(await supportedCommands()).toContain('question.answer');
    await answer({ answers: { 'Which database?': 'Postgres' }, digest: opened.digest });
    const updatedInput = { ...QUESTION.asked, answers: { 'Which database?': 'Postgres' } };
    expect(decisionIn(await printed).decision).toEqual({ behavior: 'allow', updatedInput });
    const answered = await eventually(async () => {
      const now = await request();
      return now?.outcome !== null && now;
    });
    expect(answered).toMatchObject({ outcome: 'answered', message: 'Postgres' });
  });

  test('is resolved in the dashboard when it was answered in the terminal', async () => {
    const { answer, printed, request, returned } = await asking(30, QUESTION);
    returned();
    expect(await printed).toBe('');
    await eventually(async () => (await request())?.outcome === 'answered');
    await answer({ answers: { 'Which database?': 'Postgres' } }, 409);
  });
});

test('a plan with a waiting hook is approved in the dashboard', async () => {
  const input = { plan: '# Build it', planFilePath: '/p.md' };
  const { opened, answer, printed, request } = await asking(30, { tool: 'ExitPlanMode', input });
  expect(opened).toMatchObject({ requestKind: 'permission', title: 'Approve the plan', input });
  await answer({ behavior: 'allow', digest: opened.digest });
  expect(decisionIn(await printed).decision).toEqual({ behavior: 'allow', updatedInput: input });
  await eventually(async () => (await request())?.outcome === 'allowed');
});
