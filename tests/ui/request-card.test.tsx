// @vitest-environment happy-dom

import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { RequestItem } from '@interlude/protocol/read-models';
import { act, fireEvent, render, screen, within } from '@testing-library/react';
import { useState } from 'react';
import { describe, expect, it, vi } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { Around, acceptAnswers } from './answers';
import { settle } from './laid-out';
import { aRequest } from './rows';

const posted = acceptAnswers();

let show: (...items: RequestItem[]) => void;
function Page({ first }: { first: RequestItem[] }) {
  const [items, setItems] = useState(first);
  show = (...next) => act(() => setItems(next));
  return (
    <>
      <textarea aria-label="Elsewhere" />
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a request may replace another
        <div key={index}>{renderRequest(item)}</div>
      ))}
    </>
  );
}

/** Shows requests in a transcript and waits until they accept presses. */
async function open(...items: RequestItem[]) {
  render(
    <Around>
      <Page first={items} />
    </Around>,
  );
  await act(settle);
}

const permission = (fields: Partial<RequestItem> = {}) => aRequest({ input: null, title: 'Ask', ...fields });
const question = (questions: object[], fields: Partial<RequestItem> = {}) =>
  aRequest({ requestKind: 'question', toolName: null, title: 'Which one?', input: { questions }, ...fields });
const card = (name = 'Permission: “Ask”') => screen.getByRole('region', { name });
const button = (name: string | RegExp, at: HTMLElement = document.body) => within(at).getByRole('button', { name });
const click = (element: HTMLElement) => act(async () => fireEvent.click(element));
const key = (element: Element, name: string) => act(async () => fireEvent.keyDown(element, { key: name }));
const focus = (element: HTMLElement) => act(async () => element.focus());

it('a permission can’t be allowed because another one in its place was read', async () => {
  let isInputSeen = true;
  const place = new DOMRect(10, 10, 100, 24);
  class Observer {
    readonly #seen: (entries: object[]) => void;
    constructor(seen: (entries: object[]) => void) {
      this.#seen = seen;
    }
    observe(target: Element): void {
      if (!isInputSeen && target.closest('[aria-label="Input"]') !== null) return;
      const parts = { boundingClientRect: place, intersectionRect: place };
      this.#seen([{ target, isIntersecting: true, intersectionRatio: 1, ...parts }]);
    }
    unobserve(): void {}
    disconnect(): void {}
    takeRecords(): object[] {
      return [];
    }
  }
  vi.stubGlobal('IntersectionObserver', Observer);
  vi.stubGlobal(
    'ResizeObserver',
    class {
      constructor(readonly sized: () => void) {}
      observe(): void {
        this.sized();
      }
      disconnect(): void {}
    },
  );
  await open(permission({ id: 'first', input: { command: 'ls' } }));
  expect(button('Allow').getAttribute('aria-disabled')).toBe('false');
  // A hint, or the space for one, would be an empty line below the buttons.
  expect(screen.queryByText(/the whole input/)).toBeNull();
  isInputSeen = false;
  show(permission({ id: 'second', position: '2', digest: 'd2', input: { command: 'rm -rf ~' } }));
  await act(settle);
  expect(card().textContent).toContain('rm -rf ~');
  screen.getByText('Review the whole input to enable Allow.');
  expect(button('Allow').getAttribute('aria-disabled')).toBe('true');
  await focus(card());
  await key(card(), 'a');
  await click(button('Allow'));
  expect(posted).toEqual([]);
  await click(button('Deny'));
  expect(posted).toMatchObject([{ request: 'second', behavior: 'deny' }]);
});

describe('a request card', () => {
  it('accepts its keys while it is the only one in sight and nothing else has the focus', async () => {
    await open(permission({ digest: 'd1' }));
    await focus(screen.getByRole('textbox'));
    await key(screen.getByRole('textbox'), 'a');
    expect(posted).toEqual([]);
    await act(async () => screen.getByRole('textbox').blur());
    expect(card().dataset.keys).toBe('');
    await key(document.body, 'a');
    expect(posted).toMatchObject([{ request: 'a', behavior: 'allow', digest: 'd1' }]);
  });

  it('leaves keys alone, and shows none, beside another request, or while another session has the focus', async () => {
    const other = permission({ id: 'other', position: '2', digest: 'd2', title: 'Other' });
    await open(permission(), other);
    await key(document.body, 'a');
    expect(posted).toEqual([]);
    show(permission());
    const row = document.body.appendChild(document.createElement('button'));
    row.dataset.sessionRow = 'elsewhere';
    await focus(row);
    await key(row, 'a');
    expect([posted, card().dataset.keys]).toEqual([[], undefined]);
    row.dataset.sessionRow = 's';
    await act(async () => row.blur());
    await focus(row);
    expect(card().dataset.keys).toBe('');
    await key(row, 'd');
    expect(posted).toMatchObject([{ behavior: 'deny' }]);
    row.remove();
  });

  it('states the size of its input only if that is long', async () => {
    await open(permission({ input: { command: 'npm test', description: 'Run the tests' } }));
    expect(screen.queryByText(/^Exact input/)).toBeNull();
    show(permission({ position: '2', input: { command: 'echo\n'.repeat(30) } }));
    expect(screen.getByText(/^Exact input: 31 lines/)).toBeDefined();
  });

  it('of a question has no tool’s name as its title', async () => {
    const tool = { toolName: 'AskUserQuestion', title: 'AskUserQuestion' };
    await open(question([{ question: 'Which database?', options: [{ label: 'SQLite' }] }], tool));
    expect(screen.getByText('Question')).toBeDefined();
    expect(screen.queryByText(/AskUserQuestion/)).toBeNull();
    expect(screen.getAllByText('Which database?')).toHaveLength(1);
  });

  it('keeps the focus while its answer is sent, and moves it on once it has closed', async () => {
    const onClosed = vi.fn();
    const page = (item: RequestItem) => (
      <Around>
        <RequestBoardProvider onClosed={onClosed}>{renderRequest(item)}</RequestBoardProvider>
      </Around>
    );
    const { rerender } = render(page(permission()));
    await act(settle);
    await focus(button('Allow'));
    await click(button('Allow'));
    expect(screen.queryByRole('button', { name: 'Allow' })).toBeNull();
    expect(document.activeElement).toBe(card());
    expect(onClosed).not.toHaveBeenCalled();
    rerender(page(permission({ outcome: 'allowed', resolvedAt: 2_000 })));
    expect(onClosed).toHaveBeenCalledOnce();
  });

  it('names the tool once, and drops a title that the input repeats', async () => {
    const input = { command: 'rm -rf build && npm test' };
    await open(
      aRequest({ id: 'one', title: 'Bash: rm -rf build && …', input }),
      aRequest({ id: 'two', digest: 'd2', position: '2', title: 'Bash: clean up', input }),
      aRequest({ id: 'three', digest: 'd3', position: '3', title: 'Bashful', input, outcome: 'allowed' }),
      aRequest({ id: 'four', digest: 'd4', position: '4', title: 'Bash: rm -rf build…', input, outcome: 'allowed' }),
    );
    const heads = screen.getAllByRole('region').map((one) => one.querySelector('p')?.textContent);
    expect(heads).toEqual([
      expect.stringMatching(/^Bashwaiting/),
      expect.stringMatching(/^Bash“clean up”waiting/),
      expect.stringMatching(/^“Bashful”Allowed/),
      expect.stringMatching(/^Bash rm -rf build && npm testAllowed/),
    ]);
  });

  it('stays without buttons when its request closes while it has the focus', async () => {
    await open(permission());
    await focus(button('Allow'));
    show(permission({ outcome: 'denied', resolvedAt: 2_000 }));
    within(card()).getByText('Denied elsewhere. Nothing was sent.');
    expect(document.activeElement).toBe(card());
    await key(card(), 'Enter');
    await key(card(), 'a');
    await act(settle);
    await key(card(), 'a');
    expect(posted).toEqual([]);
    await focus(screen.getByRole('textbox', { name: 'Elsewhere' }));
    within(card()).getByText(/^Denied after/);
    expect(screen.queryByText(/Nothing was sent/)).toBeNull();
  });

  it('ignores a click on Dismiss that was aimed at Deny', async () => {
    await open(permission());
    await focus(card());
    show(permission({ outcome: 'cancelled', resolvedAt: 2_000 }));
    await click(button('Dismiss'));
    within(card()).getByText('Withdrawn. Nothing was sent.');
    await act(settle);
    await click(button('Dismiss'));
    expect(screen.queryByText('Withdrawn. Nothing was sent.')).toBeNull();
    expect(posted).toEqual([]);
  });

  it('has no reason when its id reopens for another input', async () => {
    const first = permission({ id: 'q', position: '1', digest: 'd1' });
    await open(first);
    await click(button('Deny with a reason'));
    fireEvent.change(screen.getByRole('textbox', { name: 'Reason for denying' }), { target: { value: 'not now' } });
    const again = permission({ id: 'q', position: '2', digest: 'd2', title: 'Ask again' });
    show({ ...first, outcome: 'cancelled' }, again);
    const other = card('Permission: “Ask again”');
    expect(within(other).queryByRole('textbox')).toBeNull();
    await act(settle);
    await click(button('Deny', other));
    expect(posted).toEqual([{ request: 'q', behavior: 'deny', digest: 'd2' }]);
  });

  it('sends the reason with the denial, and returns on Back', async () => {
    await open(permission({ id: 'q' }));
    await click(button('Deny with a reason'));
    await click(button('Back'));
    expect(posted).toEqual([]);
    await click(button('Deny with a reason'));
    const reason = screen.getByRole('textbox', { name: 'Reason for denying' });
    fireEvent.change(reason, { target: { value: 'not there' } });
    await key(reason, 'Enter');
    expect(posted).toEqual([{ request: 'q', behavior: 'deny', message: 'not there', digest: 'd1' }]);
    within(card()).getByText(/\. Sending to the agent…$/);
  });

  it('shows why an answer failed, and can be answered again', async () => {
    const answer = { commandId: 'c', behavior: 'deny', state: 'failed', reason: 'the agent has gone on' } as const;
    await open(permission({ id: 'q', answer }));
    const reason = within(card()).getByText('the agent has gone on');
    expect(reason.parentElement?.textContent).toContain('The answer did not reach the agent: the agent has gone on');
    await focus(card());
    await key(card(), 'd');
    expect(posted).toMatchObject([{ request: 'q', behavior: 'deny' }]);
  });
});

describe('a request that expires on the page', () => {
  it('shows the time left, then that it expired', async () => {
    await open(permission({ expiresAt: Date.now() + 10_000 }));
    within(card()).getByText(/^\d s left$/);
    button('Allow');
    await act(() => vi.advanceTimersByTimeAsync(10_000));
    within(card()).getByText(/^Expired unanswered/);
    expect(screen.queryByRole('button')).toBeNull();
  });

  it('stays pinned without buttons until dismissed', async () => {
    const onDismiss = vi.fn();
    const pinned = permission({ expiresAt: Date.now() + 5_000 });
    render(<Around>{renderRequest(pinned, { onDismiss })}</Around>);
    await act(() => vi.advanceTimersByTimeAsync(5_000));
    screen.getByText('Expired. Nothing was sent.');
    expect(screen.getAllByRole('button').map(({ textContent }) => textContent)).toEqual(['Dismiss']);
    await act(settle);
    await click(button('Dismiss'));
    expect(onDismiss).toHaveBeenCalledOnce();
    expect(posted).toEqual([]);
  });
});

describe('a permission with the agent’s own options', () => {
  const options: RequestOption[] = [
    { id: 'once', label: 'Yes, this once', kind: 'allow' },
    { id: 'session', label: 'Yes, and don’t ask again for npm', kind: 'allow', isLasting: true },
    { id: 'no', label: 'No, tell it what to do instead', kind: 'deny' },
  ];

  it('sends the pressed option', async () => {
    await open(permission({ id: 'p', options }));
    const labels = screen.getAllByRole('button').map(({ textContent }) => textContent);
    expect(labels.slice(0, 3)).toEqual([
      'Allow: “Yes, this once”',
      'Allow from now on: “Yes, and don’t ask again for npm”',
      'Deny: “No, tell it what to do instead”',
    ]);
    expect(screen.queryByRole('button', { name: /^(Allow|Deny)$/ })).toBeNull();
    await click(button('Allow from now on: “Yes, and don’t ask again for npm”'));
    expect(posted).toMatchObject([{ request: 'p', behavior: 'allow', optionId: 'session' }]);
  });

  it('offers their denial like its own', async () => {
    await open(permission({ id: 'p', options }));
    const { className } = button('Deny: “No, tell it what to do instead”');
    show(permission({ id: 'q' }));
    await act(settle);
    expect(button('Deny').className).toBe(className);
  });

  it.each([
    ['a', { behavior: 'allow', optionId: 'once' }],
    ['d', { behavior: 'deny', optionId: 'no' }],
  ])('sends the matching option on the key %s', async (name, body) => {
    await open(permission({ id: 'p', options }));
    await focus(card());
    await key(card(), name);
    expect(posted).toMatchObject([{ request: 'p', ...body }]);
  });
});

describe('a question', () => {
  it('is answered by the digits of its options and Enter while its card has the focus', async () => {
    const options = (...labels: string[]) => labels.map((label) => ({ label }));
    await open(
      question([
        { question: 'Which one?', options: options('A', 'B') },
        { question: 'Which of them?', options: options('X', 'Y'), multiSelect: true },
      ]),
    );
    const card = screen.getByRole('region');
    for (const key of ['2', '3', '4', 'Enter']) await act(async () => fireEvent.keyDown(card, { key }));
    expect(posted).toMatchObject([{ answers: { 'Which one?': 'B', 'Which of them?': ['X', 'Y'] } }]);
  });

  it('sends the chosen options and the typed answer once every part is answered', async () => {
    const options = (...labels: string[]) => labels.map((label) => ({ label }));
    await open(
      question([
        { question: 'Which one?', header: 'Pick', options: options('A', 'B'), multiSelect: false },
        { question: 'Which of them?', header: 'Some', options: options('X', 'Y'), multiSelect: true },
      ]),
    );
    expect(button('Answer').hasAttribute('disabled')).toBe(true);
    await click(screen.getByRole('radio', { name: 'B' }));
    await click(screen.getByRole('checkbox', { name: 'X' }));
    const own = screen.getAllByRole('textbox', { name: 'Another answer' }).at(-1) as HTMLElement;
    fireEvent.change(own, { target: { value: 'and Z' } });
    await click(button('Answer'));
    expect(posted).toMatchObject([{ answers: { 'Which one?': 'B', 'Which of them?': ['X', 'and Z'] } }]);
  });

  const options = [{ label: 'Yes' }, { label: 'No' }];
  const long = (times: number) => `${'May I go on? '.repeat(times)}And delete the production database?`;

  it('is shown whole when it is long', async () => {
    await open(question([{ question: long(45), options }], { title: long(45) }));
    const legend = document.querySelector('legend:not(.sr-only)');
    expect(legend?.textContent).toContain('And delete the production database?');
  });

  it('can’t be answered when it is too long to show in full', async () => {
    await open(question([{ question: long(1_000), options }], { title: long(1_000) }));
    screen.getByText(/^This is too long to show in full\./);
    await click(screen.getByRole('radio', { name: 'Yes' }));
    expect(button('Answer').hasAttribute('disabled')).toBe(true);
    fireEvent.submit(button('Answer'));
    expect(posted).toEqual([]);
  });
});
