// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { hydrateRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CodeOnDemand, OnDemand, ServedOnDemand } from '@/components/ui/on-demand';

afterEach(cleanup);

const Greeting = ({ whom }: { whom: string }) => <p>Hello {whom}</p>;

const show = (code: CodeOnDemand<{ whom: string }>) =>
  render(<OnDemand code={code} name="The greeting" props={{ whom: 'world' }} />);

it('OnDemand shows a part once its code has loaded, and loads it once', async () => {
  let asked = 0;
  const code = new CodeOnDemand(async () => {
    asked += 1;
    return Greeting;
  });
  show(code);
  expect(screen.queryByText('Hello world')).toBeNull();
  await screen.findByText('Hello world');
  cleanup();
  show(code);
  screen.getByText('Hello world');
  expect(asked).toBe(1);
});

it('OnDemand shows an error when the code can’t be loaded, and retries', async () => {
  let isReachable = false;
  show(
    new CodeOnDemand(async () => {
      if (!isReachable) throw new TypeError('Failed to fetch');
      return Greeting;
    }),
  );
  const again = await screen.findByRole('button', { name: 'Try again' });
  screen.getByText(/The greeting could not be loaded/);
  isReachable = true;
  fireEvent.click(again);
  await screen.findByText('Hello world');
});

interface Props {
  whom: string;
  was: string | null;
}
const Part = ({ whom, was }: Props) => <p>{was === null ? `Hello ${whom}` : `${was}, now ${whom}`}</p>;

describe('ServedOnDemand', () => {
  const onEnd = vi.fn();
  const page = (code: CodeOnDemand<Props>, whom: string) => (
    <main>
      <ServedOnDemand
        code={code}
        name="The part"
        props={{ whom, was: null }}
        read={(markup) => ({ was: markup.textContent })}
        wait="Loading…"
        onEnd={onEnd}
      />
    </main>
  );

  /** Code that loads or fails on demand. */
  function scripted() {
    let come = (_: typeof Part | Error): void => {};
    const code = new CodeOnDemand<Props>(
      () =>
        new Promise((resolve, reject) => {
          come = (what) => (what instanceof Error ? reject(what) : resolve(what));
        }),
    );
    return { code, come: (what: typeof Part | Error) => act(async () => come(what)) };
  }

  async function served(whom: string): Promise<HTMLElement> {
    const code = new CodeOnDemand<Props>(async () => Part);
    await code.load();
    const box = document.body.appendChild(document.createElement('div'));
    vi.stubGlobal('window', undefined);
    box.innerHTML = renderToString(page(code, whom));
    vi.unstubAllGlobals();
    return box;
  }

  let root: Root;
  const complaints: unknown[] = [];
  async function hydrate(box: HTMLElement, code: CodeOnDemand<Props>) {
    const onRecoverableError = (error: unknown) => complaints.push(error);
    root = await act(async () => hydrateRoot(box, page(code, 'world'), { onRecoverableError }));
  }
  afterEach(() => {
    act(() => root?.unmount());
    document.body.replaceChildren();
    onEnd.mockClear();
  });

  it('keeps the server’s markup until the code has loaded, then replaces it at once', async () => {
    const box = await served('world');
    const markup = box.querySelector('p');
    const { code, come } = scripted();
    await hydrate(box, code);
    await act(async () => root.render(page(code, 'moon')));
    await act(async () => root.render(page(code, 'mars')));
    expect(box.querySelector('p')).toBe(markup);
    expect(box.textContent).toBe('Hello world');
    expect(onEnd).not.toHaveBeenCalled();

    const seen: (string | null)[] = [];
    const observer = new MutationObserver(() => seen.push(box.textContent));
    observer.observe(box, { childList: true, subtree: true });
    await come(Part);
    expect(box.textContent).toBe('Hello world, now mars');
    expect(new Set(seen)).toEqual(new Set(['Hello world, now mars']));
    observer.disconnect();
    expect(onEnd).toHaveBeenCalledOnce();
    expect(complaints).toEqual([]);
  });

  it('keeps the server’s markup when the code loads before hydration', async () => {
    const box = await served('everyone');
    const { code, come } = scripted();
    void code.load();
    await come(Part);
    await hydrate(box, code);
    expect(box.textContent).toBe('Hello everyone, now world');
    expect(complaints).toEqual([]);
  });

  it('keeps the server’s markup when the code can’t be loaded, and retries', async () => {
    const box = await served('world');
    const { code, come } = scripted();
    await hydrate(box, code);
    await come(new TypeError('Failed to fetch'));
    expect(box.textContent).toBe('Hello worldThe part could not be loaded. Try again');
    expect(onEnd).toHaveBeenCalledOnce();
    await act(async () => screen.getByRole('button', { name: 'Try again' }).click());
    await come(Part);
    expect(box.textContent).toBe('Hello world, now world');
  });

  it('shows the placeholder without server markup', async () => {
    const { code, come } = scripted();
    const { container } = render(page(code, 'world'));
    expect(container.textContent).toBe('Loading…');
    await come(Part);
    expect(container.textContent).toBe('Hello world');
  });
});
