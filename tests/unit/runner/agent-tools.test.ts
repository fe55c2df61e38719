import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { SelfReport } from '@interlude/protocol/agent-status';
import { NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import { MAX_REPORT_SUMMARY } from '@interlude/protocol/limits';
import { McpTools } from '@interlude/runner/host/mcp-tools';
import type { OpenObligation } from '@interlude/runner/host/obligations';
import { callTool, type SessionTools } from '@interlude/runner/mcp/agent-tools';
import { describe, expect, test } from 'vitest';

const obligation = (messageId: string, sentAt: number, sessionId = 's'): OpenObligation => ({
  ...{ messageId, sessionId, sentAt, text: `Text of ${messageId}` },
  from: { kind: 'person', id: 'mara' },
});

function toolsWith(obligations: OpenObligation[]) {
  const reports: SelfReport[] = [];
  const replies: string[][] = [];
  const tools: SessionTools = {
    report: async (report) => void reports.push(report),
    obligations: () => obligations,
    reply: async (...reply) => {
      replies.push(reply);
      return obligations.some(({ messageId }) => messageId === reply[0]) ? null : 'No such message.';
    },
  };
  return { reports, replies, tools };
}

describe('report_status', () => {
  test('accepts a state, a summary of the maximum length and a link', async () => {
    const { reports, tools } = toolsWith([]);
    const link = 'https://example.org/pull/1';
    const summary = 'x'.repeat(MAX_REPORT_SUMMARY);
    expect((await callTool('report_status', { state: 'complete', summary, link }, tools)).isError).toBe(false);
    expect((await callTool('report_status', { state: 'idle', summary: ' I wait. ' }, tools)).isError).toBe(false);
    expect(reports).toEqual([
      { state: 'complete', summary, link },
      { state: 'idle', summary: 'I wait.', link: null },
    ]);
  });

  test.each([
    ['a summary that is one longer', { state: 'idle', summary: 'x'.repeat(161) }, 'summary'],
    ['no summary', { state: 'idle' }, 'summary'],
    ['an empty summary', { state: 'idle', summary: '  ' }, 'summary'],
    ['an unknown state', { state: 'done', summary: 'x' }, 'state'],
    ['a link that is no web address', { state: 'idle', summary: 'x', link: 'javascript:alert(1)' }, 'link'],
    ['a field that it does not know', { state: 'idle', summary: 'x', mood: 'good' }, 'mood'],
    ['no object', 'idle', 'expected object'],
  ])('refuses %s and names the mistake', async (_what, input, named) => {
    const { reports, tools } = toolsWith([]);
    const { text, isError } = await callTool('report_status', input, tools);
    expect(isError).toBe(true);
    expect(text).toContain(named);
    expect(reports).toEqual([]);
  });
});

describe('list_obligations', () => {
  test('lists senders and messages that wait for a reply', async () => {
    const { text, isError } = await callTool('list_obligations', {}, toolsWith([obligation('m1', 0)]).tools);
    expect(isError).toBe(false);
    expect(JSON.parse(text.slice(text.indexOf('[')))).toEqual([
      {
        messageId: 'm1',
        from: { kind: 'person', id: 'mara' },
        text: 'Text of m1',
        sentAt: '1970-01-01T00:00:00.000Z',
      },
    ]);
  });

  test('reports an empty list, and how many messages it leaves out', async () => {
    expect((await callTool('list_obligations', undefined, toolsWith([]).tools)).text).toContain('No message waits');
    const many = Array.from({ length: 23 }, (_, index) => obligation(`m${index}`, index));
    expect((await callTool('list_obligations', {}, toolsWith(many).tools)).text).toContain('3 more');
  });
});

test('reply refuses an unknown message and lists the known ones', async () => {
  const { tools, replies } = toolsWith([obligation('m1', 0)]);
  const { text, isError } = await callTool('reply', { messageId: 'm2', text: 'Yes.' }, tools);
  expect(isError).toBe(true);
  expect(text).toContain('"m1"');
  expect(await callTool('reply', { messageId: 'm1', text: 'Yes.' }, tools)).toMatchObject({ isError: false });
  expect(await callTool('reply', { messageId: 'm1', text: '' }, tools)).toMatchObject({ isError: true });
  expect(replies).toEqual([
    ['m2', 'Yes.'],
    ['m1', 'Yes.'],
  ]);
});

/** The tools of a host, with the emitted events. */
function desk(obligations: OpenObligation[], stored = new Map<string, string>()) {
  const said: TimedEvent[] = [];
  const replied: string[] = [];
  let open: OpenWork = NOTHING_OPEN;
  const emit = (events: TimedEvent[]) => {
    const { events: out, cursors } = own.annotate('s', events, open);
    open = workAfter(open, events);
    said.push(...out);
    store(cursors);
  };
  const store = (cursors: { name: string; value: string | null }[]) => {
    for (const { name, value } of cursors) value === null ? stored.delete(name) : stored.set(name, value);
  };
  const own = new McpTools({
    emit: (_sessionId, events) => emit(events),
    store,
    openWork: () => open,
    obligations: () => obligations,
    caughtUp: async () => undefined,
    replied: (_sessionId, messageId) => void replied.push(messageId),
    reported: () => undefined,
    now: () => 7,
  });
  const tell = (type: string, more: object = {}) =>
    emit([{ occurredAt: 1, event: { type, threadId: 's', runId: 'r1', ...more } }]);
  return { own, tools: own.toolsFor('s'), said, replied, stored, tell };
}

const success = { outcome: { type: 'success' } };

describe('the tools of a host', () => {
  test('emits a reply once, as a text that names the message', async () => {
    const { own, tools, said, replied } = desk([
      obligation('m2', 2),
      obligation('m1', 1),
      obligation('m3', 0, 'other'),
    ]);
    expect(tools.obligations().map(({ messageId }) => messageId)).toEqual(['m1', 'm2']);
    expect(await tools.reply('m1', 'Yes.')).toBeNull();
    expect(said.map(({ event: { type, delta, metadata } }) => [type, delta, metadata?.interlude?.replyTo])).toEqual([
      ['TEXT_MESSAGE_START', undefined, ['m1']],
      ['TEXT_MESSAGE_CONTENT', 'Yes.', undefined],
      ['TEXT_MESSAGE_END', undefined, undefined],
    ]);
    expect(replied).toEqual(['m1']);
    expect(own.obligations().map(({ messageId }) => messageId)).toEqual(['m2', 'm3']);
    expect(await tools.reply('m1', 'Yes.')).toContain('already');
    expect(await tools.reply('m3', 'Yes.')).toContain('No message "m3"');
    expect(said).toHaveLength(3);
  });

  test('names replied messages at the end of the turn, beside those of the turn', async () => {
    const { tools, said, tell } = desk([obligation('m1', 1)]);
    tell('RUN_STARTED', { metadata: { interlude: { userMessageIds: ['m0'] } } });
    await tools.reply('m1', 'Yes.');
    tell('RUN_FINISHED', success);
    expect(said.at(-1)?.event.metadata?.interlude?.userMessageIds).toEqual(['m0', 'm1']);
    tell('RUN_STARTED', { runId: 'r2' });
    tell('RUN_FINISHED', { runId: 'r2', ...success });
    expect(said.at(-1)?.event.metadata).toBeUndefined();
  });

  test.each([
    ['fails', 'RUN_ERROR', {}],
    ['is interrupted', 'RUN_FINISHED', { outcome: { type: 'interrupt' } }],
  ])('lists a message again if the turn of its reply %s', async (_how, type, more) => {
    const { tools, said, tell } = desk([obligation('m1', 1)]);
    tell('RUN_STARTED');
    await tools.reply('m1', 'Yes.');
    expect(tools.obligations()).toEqual([]);
    tell(type, more);
    expect(said.at(-1)?.event.metadata).toBeUndefined();
    expect(tools.obligations()).toHaveLength(1);
  });

  test("keeps a report and its turn until the next report or the session's end, across restarts", async () => {
    const { own, tools, tell, stored } = desk([]);
    tell('RUN_STARTED');
    await tools.report({ state: 'working', summary: 'I build.', link: null });
    expect(own.reportOf('s')).toEqual({ state: 'working', summary: 'I build.', turnId: 'r1', at: 7 });
    tell('RUN_FINISHED', success);
    await tools.report({ state: 'complete', summary: 'Built.', link: 'https://example.org/' });
    const complete = { state: 'complete', summary: 'Built.', link: 'https://example.org/', turnId: null, at: 7 };
    expect(own.reportOf('s')).toEqual(complete);
    const next = desk([], stored);
    await next.own.restore({ cursors: async () => stored });
    expect(next.own.reportOf('s')).toEqual(complete);
    expect(next.own.reportOf('other')).toBeUndefined();
    next.tell('CUSTOM', { name: 'session:ended', value: {} });
    expect(next.own.reportOf('s')).toBeUndefined();
    expect([...stored]).toEqual([]);
  });
});
