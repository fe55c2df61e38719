'use client';

import { type ComponentType, type ReactNode, use, useEffect, useEffectEvent, useRef, useState } from 'react';
import { useHydrated } from './now';
import { whenIdle } from './when-idle';

/** A component whose code does not come with the page. Made once, beside what shows it. */
export class CodeOnDemand<Props extends object> {
  loaded: ComponentType<Props> | null = null;
  #loading: Promise<ComponentType<Props>> | null = null;
  readonly #load: () => Promise<ComponentType<Props>>;

  constructor(load: () => Promise<ComponentType<Props>>) {
    this.#load = load;
  }

  /** The same promise until it has failed. */
  load(): Promise<ComponentType<Props>> {
    this.#loading ??= this.#load().then(
      (content) => {
        this.loaded = content;
        return content;
      },
      (error) => {
        this.#loading = null;
        throw error;
      },
    );
    return this.#loading;
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
  const { Content, hasFailed, tryAgain } = useCode(code, code.loaded);
  if (Content !== null) return <Content {...props.props} />;
  return hasFailed ? <NotLoaded name={name} tryAgain={tryAgain} /> : null;
}

/** The same object each time: React writes another one into the element, and the markup would be gone. */
const AS_IT_CAME = { __html: '' };

/**
 * The same for a part that the server renders: its markup stays as it came until the code is here, and is then replaced
 * in one commit. The page can be used without that code, and no markup is gone through twice.
 *
 * @param read what the part is to know of the markup that it replaces
 * @param wait stands in its place where no markup came
 * @param onEnd called when the part is there, or can't be loaded
 */
export function ServedOnDemand<Props extends object>(props: {
  code: CodeOnDemand<Props>;
  name: string;
  props: Props;
  read: (markup: Element) => Partial<Props>;
  wait: ReactNode;
  onEnd: () => void;
}) {
  const { code, name, read, wait } = props;
  const [hasMarkup] = useState(!useHydrated());
  const markup = useRef<HTMLDivElement>(null);
  const start = hasMarkup ? null : code.loaded;
  const { Content, taken, hasFailed, tryAgain } = useCode(code, start, () => markup.current && read(markup.current));
  const isOver = Content !== null || hasFailed;
  const onEnd = useEffectEvent(props.onEnd);
  useEffect(() => {
    if (isOver) onEnd();
  }, [isOver]);

  if (typeof window === 'undefined') {
    if (code.loaded === null) use(code.load());
    const Served = code.loaded as ComponentType<Props>;
    return (
      <div className="contents">
        <Served {...props.props} />
      </div>
    );
  }
  if (Content !== null) return <Content {...props.props} {...taken} />;
  return (
    <>
      {hasMarkup ? (
        // biome-ignore lint/security/noDangerouslySetInnerHtml: nothing is set: React leaves what it finds there alone
        <div ref={markup} className="contents" dangerouslySetInnerHTML={AS_IT_CAME} suppressHydrationWarning />
      ) : (
        wait
      )}
      {hasFailed && <NotLoaded name={name} tryAgain={tryAgain} />}
    </>
  );
}

/** @param take what is to be known of the page just before the code's first render */
function useCode<Props extends object>(
  code: CodeOnDemand<Props>,
  start: ComponentType<Props> | null,
  take: () => Partial<Props> | null = () => null,
) {
  interface Code {
    Content: ComponentType<Props> | null;
    taken: Partial<Props> | null;
    hasFailed: boolean;
  }
  const [{ Content, taken, hasFailed }, setState] = useState<Code>({ Content: start, taken: null, hasFailed: false });
  const come = useEffectEvent((content: ComponentType<Props>) =>
    setState({ Content: content, taken: take(), hasFailed: false }),
  );
  useEffect(() => {
    if (Content !== null || hasFailed) return;
    code.load().then(
      (content) => come(content),
      () => setState({ Content: null, taken: null, hasFailed: true }),
    );
  }, [code, Content, hasFailed]);
  return { Content, taken, hasFailed, tryAgain: () => setState({ Content: null, taken: null, hasFailed: false }) };
}

function NotLoaded({ name, tryAgain }: { name: string; tryAgain: () => void }) {
  return (
    <p role="status" className="px-4 py-2 text-failed text-xs">
      {name} could not be loaded.{' '}
      <button type="button" className="underline" onClick={tryAgain}>
        Try again
      </button>
    </p>
  );
}
