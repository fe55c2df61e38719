// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { TranscriptWait } from '@/components/transcript/transcript-wait';

afterEach(cleanup);

/** The page before and after the transcript has loaded, with a field below. */
function aPage(options: { isThere?: boolean; isLoading?: boolean; onCome?: () => void; retry?: () => void }) {
  const { isThere = false, isLoading = false, onCome = () => {}, retry = () => {} } = options;
  return (
    <>
      {!isThere && (
        <TranscriptWait
          error={new Error('The database is busy.')}
          isLoading={isLoading}
          retry={retry}
          onCome={onCome}
        />
      )}
      <textarea />
    </>
  );
}
const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

test('says why the transcript is missing, and that the page retries', () => {
  const { rerender } = render(aPage({ isLoading: true }));
  expect(document.body.textContent).toBe('Loading the transcript…The database is busy. Retrying automatically.');
  rerender(aPage({}));
  expect(document.body.textContent).toBe('The transcript could not be loaded.The database is busy.Try again');
});

test('moves the focus from its button to the loaded transcript', async () => {
  const [onCome, retry] = [vi.fn(), vi.fn()];
  const { rerender } = render(aPage({ onCome, retry }));
  const button = screen.getByText('Try again');
  button.focus();
  fireEvent.click(button);
  expect(retry).toHaveBeenCalledOnce();
  rerender(aPage({ onCome, retry, isLoading: true }));
  expect(document.activeElement).toBe(button);
  rerender(aPage({ onCome, isThere: true }));
  await frame();
  expect(onCome).toHaveBeenCalledOnce();
});

test('leaves the focus in the composer', async () => {
  const onCome = vi.fn();
  const { rerender, container } = render(aPage({ onCome, isLoading: true }));
  const field = container.querySelector('textarea');
  field?.focus();
  rerender(aPage({ onCome, isThere: true }));
  await frame();
  expect(onCome).not.toHaveBeenCalled();
  expect(document.activeElement).toBe(field);
});
