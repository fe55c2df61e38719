// @vitest-environment happy-dom
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { Markdown } from '@/components/ui/markdown/markdown';
import { LIGHT_CHARACTERS } from '@/components/ui/markdown/parse';
import { runTextJob, type TextJob } from '@/components/ui/markdown/text-jobs';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A worker that begins its job when `start` is called, and completes it when `answer` is called. */
class FakeWorker {
  static jobs: TextJob[] = [];
  static start: (() => void) | null = null;
  static answer: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: (() => void) | null = null;
  postMessage(job: TextJob) {
    FakeWorker.jobs.push(job);
    FakeWorker.start = () => this.onmessage?.({ data: 'started' });
    FakeWorker.answer = () => this.onmessage?.({ data: structuredClone({ result: runTextJob(job) }) });
  }
  terminate() {}
}

const long = (word: string) => `**${word}**\n\n${'words of an answer\n\n'.repeat(300)}`;

it('shows a long text as written until the worker has parsed it', async () => {
  vi.stubGlobal('Worker', FakeWorker);
  const { container } = render(<Markdown text={long('done')} />);
  expect(container.querySelector('strong')).toBeNull();
  expect(container.textContent).toContain('**done**');
  FakeWorker.answer?.();
  await waitFor(() => expect(container.querySelector('strong')?.textContent).toBe('done'));
});

it('parses a short text without the worker', () => {
  vi.stubGlobal('Worker', FakeWorker);
  FakeWorker.jobs = [];
  const { container } = render(<Markdown text={`**done**${' words'.repeat(LIGHT_CHARACTERS / 10)}`} />);
  expect(container.querySelector('strong')?.textContent).toBe('done');
  expect(FakeWorker.jobs).toEqual([]);
});

it('sends only the end of a growing text to the worker', async () => {
  vi.stubGlobal('Worker', FakeWorker);
  FakeWorker.jobs = [];
  const { container, rerender } = render(<Markdown text={long('one')} streaming />);
  rerender(<Markdown text={`${long('one')}**two**`} streaming />);
  expect(FakeWorker.jobs).toHaveLength(1);
  FakeWorker.answer?.();
  await waitFor(() => expect(container.querySelector('strong')?.textContent).toBe('one'));
  await waitFor(() => expect(container.querySelectorAll('strong')).toHaveLength(2));
  expect(FakeWorker.jobs).toHaveLength(1);
});

it('leaves a text as written when the worker takes too long', async () => {
  vi.stubGlobal('Worker', FakeWorker);
  vi.useFakeTimers();
  render(<Markdown text={long('slow')} />);
  FakeWorker.start?.();
  await vi.advanceTimersByTimeAsync(5_000);
  vi.useRealTimers();
  await waitFor(() => expect(screen.getByText('The rest is shown as plain text.')).toBeDefined());
});

it('waits for a worker that loads slowly', async () => {
  vi.stubGlobal('Worker', FakeWorker);
  vi.useFakeTimers();
  const { container } = render(<Markdown text={long('late')} />);
  await vi.advanceTimersByTimeAsync(60_000);
  FakeWorker.start?.();
  FakeWorker.answer?.();
  vi.useRealTimers();
  await waitFor(() => expect(container.querySelector('strong')?.textContent).toBe('late'));
});
