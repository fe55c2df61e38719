'use client';

import { type ComponentType, useEffect, useState } from 'react';
import { whenIdle } from './when-idle';

/** A component whose code does not come with the page. Made once, beside what shows it. */
export class CodeOnDemand<Props extends object> {
  loaded: ComponentType<Props> | null = null;
  readonly #load: () => Promise<ComponentType<Props>>;

  constructor(load: () => Promise<ComponentType<Props>>) {
    this.#load = load;
  }

  async load(): Promise<ComponentType<Props>> {
    this.loaded ??= await this.#load();
    return this.loaded;
  }
}

/** Loads it once the page is idle, so that it is there at once, and also after the server has gone. */
export function usePreload(code: { load: () => Promise<unknown> }): void {
  useEffect(() => {
    const turn = whenIdle(() => code.load().catch(() => {}));
    return () => turn.cancel();
  }, [code]);
}

/**
 * A part of the page whose code comes when it is shown, if it has not come before.
 *
 * Failure: where it can't be loaded the page says so in its place, and asks for it again on a press.
 */
export function OnDemand<Props extends object>(props: { code: CodeOnDemand<Props>; name: string; props: Props }) {
  const { code, name } = props;
  const [{ Content, hasFailed }, setState] = useState(() => ({ Content: code.loaded, hasFailed: false }));
  useEffect(() => {
    if (Content !== null || hasFailed) return;
    code.load().then(
      (content) => setState({ Content: content, hasFailed: false }),
      () => setState({ Content: null, hasFailed: true }),
    );
  }, [code, Content, hasFailed]);
  if (Content !== null) return <Content {...props.props} />;
  if (!hasFailed) return null;
  return (
    <p role="status" className="px-4 py-2 text-failed text-xs">
      {name} could not be loaded.{' '}
      <button type="button" className="underline" onClick={() => setState({ Content: null, hasFailed: false })}>
        Try again
      </button>
    </p>
  );
}
