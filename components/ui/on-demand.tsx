'use client';

import { type ComponentType, type ReactNode, use, useEffect, useEffectEvent, useRef, useState } from 'react';
import { useHydrated } from './clock';
import { whenIdle } from './when-idle';

/** A component whose code loads separately. Create it once, at module level. */
export class CodeOnDemand<Props extends object> {
  loaded: ComponentType<Props> | null = null;
  #loading: Promise<ComponentType<Props>> | null = null;
  readonly #load: () => Promise<ComponentType<Props>>;

  constructor(load: () => Promise<ComponentType<Props>>) {
    this.#load = load;
  }

  /** Returns the same promise until it rejects. */
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

/** Loads the code when the page is idle, so that it shows immediately, even if the server is gone by then. */
export function usePreload(code: { load: () => Promise<unknown> }): void {
  useEffect(() => {
    const turn = whenIdle(() => code.load().catch(() => {}));
    return () => turn.cancel();
  }, [code]);
}

/**
 * A part of the page whose code loads when it is first shown.
 *
 * Failure: if the code can't be loaded, an error with a retry button takes its place.
 */
export function OnDemand<Props extends object>(props: { code: CodeOnDemand<Props>; name: string; props: Props }) {
  const { code, name } = props;
  const { Content, hasFailed, tryAgain } = useCode(code, code.loaded);
  if (Content !== null) return <Content {...props.props} />;
  return hasFailed ? <NotLoaded name={name} tryAgain={tryAgain} /> : null;
}

/** A constant, because React would replace the markup when the object changes. */
const AS_IT_CAME = { __html: '' };

/**
 * `OnDemand` for a part that the server renders. The server's markup stays until the code has loaded, and is replaced in
 * one commit without hydration.
 *
 * @param read derives props from the markup just before it is replaced
 * @param wait placeholder if there is no server markup
 * @param onEnd called when the part has rendered or failed to load
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
  const { Content, captured, hasFailed, tryAgain } = useCode(code, start, () => markup.current && read(markup.current));
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
  if (Content !== null) return <Content {...props.props} {...captured} />;
  return (
    <>
      {hasMarkup ? (
        // biome-ignore lint/security/noDangerouslySetInnerHtml: React keeps the server's markup
        <div ref={markup} className="contents" dangerouslySetInnerHTML={AS_IT_CAME} suppressHydrationWarning />
      ) : (
        wait
      )}
      {hasFailed && <NotLoaded name={name} tryAgain={tryAgain} />}
    </>
  );
}

/** @param capture reads props from the page just before the code's first render */
function useCode<Props extends object>(
  code: CodeOnDemand<Props>,
  start: ComponentType<Props> | null,
  capture: () => Partial<Props> | null = () => null,
) {
  interface Code {
    Content: ComponentType<Props> | null;
    captured: Partial<Props> | null;
    hasFailed: boolean;
  }
  const [{ Content, captured, hasFailed }, setState] = useState<Code>({
    Content: start,
    captured: null,
    hasFailed: false,
  });
  const come = useEffectEvent((content: ComponentType<Props>) =>
    setState({ Content: content, captured: capture(), hasFailed: false }),
  );
  useEffect(() => {
    if (Content !== null || hasFailed) return;
    code.load().then(
      (content) => come(content),
      () => setState({ Content: null, captured: null, hasFailed: true }),
    );
  }, [code, Content, hasFailed]);
  return {
    Content,
    captured,
    hasFailed,
    tryAgain: () => setState({ Content: null, captured: null, hasFailed: false }),
  };
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
