// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';

afterEach(cleanup);

const Greeting = ({ whom }: { whom: string }) => <p>Hello {whom}</p>;

const show = (code: CodeOnDemand<{ whom: string }>) =>
  render(<OnDemand code={code} name="The greeting" props={{ whom: 'world' }} />);

it('a part is shown once its code is there, which is asked for once', async () => {
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

it('a part whose code can’t be loaded says so and is asked for again', async () => {
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
