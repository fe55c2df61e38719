/** A metric of which the value is read when somebody asks. */
export interface Gauge {
  /** @see https://prometheus.io/docs/practices/naming/ */
  name: string;
  help: string;
  type: 'gauge' | 'counter';
  /** Values by their labels. */
  samples: readonly Sample[];
}

export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/**
 * In Prometheus' text format. Label values are words of our own, and need no escapes.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export function gaugesText(gauges: readonly Gauge[]): string {
  return gauges
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(({ labels, value }) => `${name}${labelText(labels)} ${value}`);
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');
    })
    .join('\n');
}

function labelText(labels: Sample['labels']): string {
  const named = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return named.length === 0 ? '' : `{${named.join(',')}}`;
}
