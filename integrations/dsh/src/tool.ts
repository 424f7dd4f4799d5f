/** Tools as the host's registry wants them: a schema for the model, checked again here before anything is done. */

import type { ToolDefinition, ToolExecution } from './host.ts'

type Kind = 'string' | 'integer'

export interface Argument {
  readonly type: Kind
  readonly description: string
  readonly required?: boolean
}

export interface ToolSpec<A> {
  readonly name: string
  readonly description: string
  readonly arguments: Readonly<Record<string, Argument>>
  /** JSON schema of the answer. */
  readonly answer: Record<string, unknown>
  /** What the model reads. */
  render(value: never, args: A): string
  run(args: A, exec: ToolExecution): Promise<unknown>
  readonly reads?: boolean
}

/** What is wrong with arguments that a model gave, or nothing. */
export function checkArguments(spec: Readonly<Record<string, Argument>>, args: unknown): string | undefined {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return 'the arguments must be an object'
  const given = args as Record<string, unknown>
  for (const key of Object.keys(given)) if (!Object.hasOwn(spec, key)) return `there is no argument ${key}; known: ${Object.keys(spec).join(', ') || 'none'}`
  for (const [key, { type, required }] of Object.entries(spec)) {
    const value = given[key]
    if (value === undefined) {
      if (required === true) return `${key} is required`
    } else if (type === 'string' ? typeof value !== 'string' : !Number.isSafeInteger(value)) return `${key} must be ${type === 'string' ? 'a text' : 'a whole number'}`
  }
  return undefined
}

export function tool<A>(spec: ToolSpec<A>): ToolDefinition {
  const required = Object.entries(spec.arguments).filter(([, argument]) => argument.required === true)
  return {
    name: spec.name,
    description: spec.description,
    parameters: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(Object.entries(spec.arguments).map(([key, { type, description }]) => [key, { type, description }])),
      ...(required.length === 0 ? {} : { required: required.map(([key]) => key) }),
    },
    output: {
      schema: spec.answer,
      render: (args, value) => [{ type: 'text', text: spec.render(value as never, args as A) }],
    },
    async execute(args, exec) {
      const wrong = checkArguments(spec.arguments, args)
      if (wrong !== undefined) throw new Error(`${spec.name}: ${wrong}`)
      return spec.run(args as A, exec)
    },
    isConcurrencySafe: () => spec.reads === true,
  }
}

/** The schema of an object that has exactly these members; `?` at the end of a name: it may be missing. */
export function object(members: Record<string, Record<string, unknown>>): Record<string, unknown> {
  const entries = Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema] as const)
  const required = Object.keys(members).filter(name => !name.endsWith('?'))
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(entries), ...(required.length === 0 ? {} : { required }) }
}

export const TEXT = { type: 'string' }
export const WHOLE = { type: 'integer' }
export const FLAG = { type: 'boolean' }
export const list = (items: Record<string, unknown>): Record<string, unknown> => ({ type: 'array', items })
