// @vitest-environment happy-dom

import type { FileEdit } from '@interlude/protocol/ag-ui';
import type { PlanItem, Task } from '@interlude/protocol/read-models';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { type ReactNode, useRef, useState } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CommandList } from '@/components/agents/runner-facts';
import { TroubleLine } from '@/components/agents/trouble-line';
import { CommandNames } from '@/components/composer/command-names';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { RefusalsProvider } from '@/components/live/refusals';
import { WakeSwitch } from '@/components/sessions/arrange-popover';
import { TaskWake, wakeKey } from '@/components/tasks/task-stop';
import { PlanLine } from '@/components/transcript/item-list';
import { EditCount, ToolChanges } from '@/components/transcript/tool-call-line';
import { TurnFooter } from '@/components/transcript/turn-article';
import { turnName } from '@/components/transcript/turn-cause';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { SentenceList } from '@/components/ui/sentence-list';
import { layOut, settle } from './laid-out';
import { aCall, aTask, aTurn } from './rows';

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe('a plan', () => {
  const item = (fields: Partial<PlanItem> = {}): PlanItem => ({
    kind: 'plan',
    id: 'p',
    position: '3',
    at: 1_000,
    entries: [
      { content: 'Read', status: 'completed' },
      { content: 'Write', status: 'in_progress', priority: 'high' },
    ],
    ...fields,
  });

  it('shows its progress on one line, and unfolds to its steps', () => {
    render(<PlanLine item={item({ omitted: 7 })} />);
    const line = screen.getByRole('button', { name: 'Plan 1 of 2 done: Write' });
    expect(screen.queryByRole('list')).toBeNull();
    fireEvent.click(line);
    expect(screen.getAllByRole('listitem').map(({ textContent }) => textContent)).toEqual([
      'done: Read',
      'in progress: Write',
    ]);
    expect(screen.getByText('… and 7 more are not shown.')).toBeDefined();
  });

  it('is marked as empty without steps', () => {
    render(<PlanLine item={item({ entries: [] })} />);
    fireEvent.click(screen.getByRole('button', { name: 'Plan 0 of 0 done' }));
    expect(screen.getByText('No to-dos.')).toBeDefined();
  });
});

describe('the reported changes of a call', () => {
  const edits: FileEdit[] = [
    { path: 'a.ts', before: 'one\n', after: '1\n2\n' },
    { path: 'a.ts', before: 'x', after: 'y' },
    { path: 'new\u202e.ts', before: '', after: 'z\n' },
  ];
  const captions = () =>
    screen.queryAllByRole('figure').map((figure) => figure.querySelector('figcaption')?.textContent);

  it('are a diff per file under its path, with consecutive changes merged', () => {
    const { container } = render(<ToolChanges call={aCall({ edits })} />);
    expect(captions()).toEqual(['a.ts', 'new⟨RLO⟩.ts']);
    expect(container.querySelectorAll('ins')).toHaveLength(4);
    expect(container.querySelectorAll('del')).toHaveLength(2);
  });

  it('are counted on the call’s line in place of the requested edits', () => {
    const args = { file_path: 'a.ts', old_string: 'one', new_string: 'two' };
    render(<EditCount call={aCall({ name: 'Edit', args, edits })} />);
    expect(screen.getByText('4 lines added, 2 removed')).toBeDefined();
  });

  it('are not shown when they equal the requested edits', () => {
    const args = { file_path: 'a.ts', old_string: 'one', new_string: 'two' };
    const same = [{ path: '/w/a.ts', before: 'one', after: 'two' }];
    render(<ToolChanges call={aCall({ name: 'Edit', args, edits: same })} />);
    expect(captions()).toEqual([]);
  });

  it('are bounded, with a button for more', () => {
    const many = Array.from({ length: 25 }, (_, index) => ({ path: `f${index}`, before: '', after: 'x' }));
    render(<ToolChanges call={aCall({ edits: many })} />);
    expect(captions()).toHaveLength(10);
    fireEvent.click(screen.getByRole('button', { name: 'Show 10 of 15 more files' }));
    expect(captions()).toHaveLength(20);
  });
});

describe('a turn', () => {
  it('marks an inferred end', () => {
    const { rerender } = render(<TurnFooter turn={aTurn({ inferred: true })} />);
    expect(screen.getByTitle(/did not report the end of this turn/).textContent).toBe('end inferred');
    rerender(<TurnFooter turn={aTurn()} />);
    expect(screen.queryByText('end inferred')).toBeNull();
  });

  it('that Interlude started names Interlude and the task', () => {
    const trigger = { kind: 'task', taskIds: ['t1'], wokenBy: 'interlude' } as const;
    const turn = aTurn({ kind: 'between-run', trigger: { ...trigger, taskIds: ['t1'] } });
    const slots = { findTask: () => aTask({ description: 'npm test' }), outcomeOf: () => 'completed' };
    expect(turnName(turn, slots)).toBe('Between-run turn: woken by Interlude for npm test (completed)');
    expect(turnName(aTurn({ ...turn, trigger: { ...trigger, taskIds: [] } }), slots)).toBe(
      'Between-run turn: woken by Interlude',
    );
  });
});

describe('waking an agent for a task', () => {
  const ended: Partial<Task> = { status: 'completed', endedAt: 2_000 };
  const offered = (task: Partial<Task>, takes: unknown = ['task.wake'], stoppedAt: number | null = null) => {
    const { unmount } = render(
      <Page status={{ takes }} stoppedAt={stoppedAt}>
        <TaskWake task={aTask(task)} />
      </Page>,
    );
    const found = screen.queryByRole('button', { name: 'Wake the agent for “Poll”' }) !== null;
    unmount();
    return found;
  };

  it('is offered for an ended command if the runner supports it', () => {
    expect(offered(ended)).toBe(true);
    expect(offered({ ...ended, status: 'failed' })).toBe(true);
  });

  it.each([
    ['that still runs', {}, ['task.wake'], null],
    ['that a turn has received', { ...ended, answeredInTurnId: 'r2' }, ['task.wake'], null],
    [
      'that a turn of another session has received',
      { ...ended, toldElsewhere: { sessionId: 'x', turnId: 'r' } },
      ['task.wake'],
      null,
    ],
    ['that is only presumed to be lost', { ...ended, status: 'lost', presumed: 'unlisted' }, ['task.wake'], null],
    ['that is a subagent', { ...ended, kind: 'subagent' }, ['task.wake'], null],
    ['of a runner that doesn’t support it', ended, ['message'], null],
    ['of a runner that says nothing of what it acts on', ended, undefined, null],
    ['without a signal', ended, ['task.wake'], 1_000],
  ] as [string, Partial<Task>, unknown, number | null][])(
    'is not offered of one %s',
    (_what, task, takes, stoppedAt) => {
      expect(offered(task, takes === undefined ? null : takes, stoppedAt)).toBe(false);
    },
  );
});

it('posts a wake-up once, and offers it again when the agent refuses', async () => {
  vi.useFakeTimers();
  layOut();
  const posted: string[] = [];
  vi.stubGlobal('fetch', async (url: string) => {
    posted.push(url);
    return Response.json({ commandId: 'c', state: 'queued' }, { status: 202 });
  });
  const store = new ActionStore('s', () => {});
  render(
    <Page status={{ takes: ['task.wake'] }} stoppedAt={null} store={store}>
      <TaskWake task={aTask({ id: 't/1', status: 'failed', endedAt: 2_000 })} />
    </Page>,
  );
  const wake = () => screen.getByRole('button', { name: 'Wake the agent for “Poll”' });
  fireEvent.click(wake());
  expect(posted).toEqual([]);
  await act(settle);
  await act(async () => fireEvent.click(wake()));
  expect(posted).toEqual(['/api/v1/sessions/s/tasks/t%2F1/wake']);
  screen.getByText('Waking the agent…');
  await act(async () => store.fail(wakeKey(aTask()), 'the agent is busy'));
  screen.getByText(/^Could not wake the agent:/);
  await act(settle);
  await act(async () => fireEvent.click(wake()));
  expect(posted).toHaveLength(2);
});

describe('WakeSwitch', () => {
  let asked: unknown[];
  let response: () => Response;
  beforeEach(() => {
    asked = [];
    response = () => Response.json({ commandId: 'c', state: 'queued', when: 'command-ended' });
    vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
      asked.push([url, init.method, JSON.parse(String(init.body))]);
      return response();
    });
  });
  const isOn = () => screen.getByRole('switch').getAttribute('aria-checked');
  const press = () => act(async () => fireEvent.click(screen.getByRole('switch')));

  it('shows the requested rule, then follows the session’s row', async () => {
    const { rerender } = render(<WakeSwitch session={{ id: 's/1', wakeRule: null }} />);
    expect(isOn()).toBe('false');
    await press();
    expect(asked).toEqual([['/api/v1/sessions/s%2F1/wake-rule', 'PUT', { when: 'command-ended' }]]);
    expect(isOn()).toBe('true');
    rerender(<WakeSwitch session={{ id: 's/1', wakeRule: 'command-ended' }} />);
    expect(isOn()).toBe('true');
    // the runner has refused it
    rerender(<WakeSwitch session={{ id: 's/1', wakeRule: null }} />);
    expect(isOn()).toBe('false');
  });

  it('shows the previous rule and the reason when the server refuses', async () => {
    response = () => Response.json({ error: { code: 'conflict', message: 'The session has ended.' } }, { status: 409 });
    render(<WakeSwitch session={{ id: 's', wakeRule: 'never' }} />);
    await press();
    expect(isOn()).toBe('false');
    expect(screen.getByRole('alert').textContent).toBe('The session has ended.');
  });
});

describe('the commands of an agent', () => {
  const names = () => screen.queryAllByRole('option').map(({ textContent }) => textContent);
  const chosen = () => screen.getByRole('option', { selected: true }).textContent;
  const key = (name: string) => fireEvent.keyDown(screen.getByRole('textbox'), { key: name });

  it('are completed, prefix matches first: arrows and Enter choose one without sending', () => {
    const onSend = vi.fn();
    render(<Field onSend={onSend} />);
    expect(names()).toEqual(['/reviewLooks', '/reset', '/preview']);
    expect(chosen()).toBe('/reviewLooks');
    key('ArrowUp');
    expect(chosen()).toBe('/preview');
    key('ArrowDown');
    key('ArrowDown');
    expect(chosen()).toBe('/reset');
    const field = screen.getByRole<HTMLTextAreaElement>('textbox');
    expect(document.getElementById(field.getAttribute('aria-activedescendant') ?? '')?.textContent).toBe('/reset');
    key('Enter');
    expect(field.value).toBe('/reset ');
    expect(onSend).not.toHaveBeenCalled();
    expect([names(), field.getAttribute('aria-controls')]).toEqual([[], null]);
  });

  it('close on Escape or when the name is complete: then Enter sends', () => {
    const onSend = vi.fn();
    render(<Field onSend={onSend} />);
    key('Escape');
    expect(names()).toEqual([]);
    key('Enter');
    expect(onSend).toHaveBeenCalledTimes(1);
    cleanup();
    render(<Field onSend={onSend} />);
    fireEvent.change(screen.getByRole('textbox'), { target: { value: '/reset' } });
    expect(names()).toEqual(['/reset']);
    key('Enter');
    expect(onSend).toHaveBeenCalledTimes(2);
  });

  it('are a folded list on the agent’s page', () => {
    render(<CommandList commands={[{ name: 'review', description: 'Looks' }]} />);
    fireEvent.click(screen.getByRole('button', { name: '1 command' }));
    expect(screen.getByRole('definition').textContent).toBe('Looks');
  });
});

it('shows troubles and limits verbatim, without markup', () => {
  const { container } = render(
    <>
      <TroubleLine trouble={'Start it again \u202e<b>now</b>'} />
      <SentenceList sentences={['It tells no ends.', 'a\u202eb']} />
    </>,
  );
  expect(container.textContent).toContain('Start it again ⟨RLO⟩<b>now</b>');
  expect(screen.getAllByRole('listitem').map(({ textContent }) => textContent)).toEqual([
    'It tells no ends.',
    'a⟨RLO⟩b',
  ]);
});

const COMMANDS = [{ name: 'review', description: 'Looks' }, { name: 'reset' }, { name: 'preview' }];
function Field({ onSend }: { onSend: () => void }) {
  const [text, setText] = useState('/re');
  const field = useRef<HTMLTextAreaElement>(null);
  return (
    <div>
      <textarea
        ref={field}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === 'Enter' && onSend()}
      />
      <CommandNames status={{ commands: COMMANDS }} typed={text} field={field} onTake={setText} />
    </div>
  );
}

function Page(props: {
  status: Record<string, unknown>;
  stoppedAt: number | null;
  store?: ActionStore;
  children: ReactNode;
}) {
  const { status, stoppedAt, store = new ActionStore('s', () => {}), children } = props;
  return (
    <NowProvider renderedAt={100_000}>
      <ActionsProvider store={store}>
        <LivenessProvider stoppedAt={stoppedAt} lastSignalAt={null} why="Runner gone" isAway={false}>
          <RefusalsProvider status={status}>{children}</RefusalsProvider>
        </LivenessProvider>
      </ActionsProvider>
    </NowProvider>
  );
}
