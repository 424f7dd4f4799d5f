/**
 * What this plugin uses of its host, and nothing else: structural types, so that the package imports none of the host's
 * packages and works across its releases. `test/host-types.ts` checks them against the real ones.
 */

/** One event of a session's log. `data` is the host's; every reader checks what it takes from it. */
export interface SessionEvent {
  readonly seq: number
  readonly type: string
  readonly time: number
  readonly data: Record<string, unknown>
  readonly surfaceOp?: 'append' | { readonly op: 'replace'; readonly start: number; readonly end: number }
  readonly sourceEventSeqs?: readonly number[]
}

export interface SessionHeader {
  readonly id: string
  readonly createdAt: number
  readonly cwd?: string
  readonly parentSession?: string
  readonly seedLength?: number
  readonly origin?: string
  readonly delegationDepth?: number
}

/** A live session. `events` is the name up to 0.1.1, `snapshotEvents` later. */
export interface Session {
  readonly id: string
  readonly header: SessionHeader
  readonly seq: number
  readonly events?: readonly SessionEvent[]
  snapshotEvents?(): readonly SessionEvent[]
  append(type: string, data: unknown, options?: unknown): SessionEvent
  requestHeader?(): RequestHeader | undefined
  deriveEventMessage?(event: SessionEvent): unknown
}

/** The part of a logged request that a second request is made from. */
export interface RequestHeader {
  readonly config: { readonly provider: string; readonly model: string; readonly reasoningEffort?: string }
  readonly system?: string
  readonly tools?: readonly unknown[]
}

export interface Agent {
  readonly id: string
  readonly session: Session
  readonly options: { readonly provider?: string; readonly model?: string }
  readonly status?: string
  inject(message: UserMessage): void
  steer?(message: UserMessage): void
}

export interface TextBlock {
  readonly type: 'text'
  readonly text: string
}

export interface UserMessage {
  readonly id: string
  readonly role: 'user'
  readonly content: readonly TextBlock[]
  readonly source: { readonly kind: 'plugin'; readonly plugin: string; readonly form?: string }
}

/** A call of a tool on its way through the host's pipeline. */
export interface ToolExecution {
  readonly callId: string
  readonly rootCallId?: string
  readonly name: string
  readonly arguments: unknown
  readonly agent?: Agent
  readonly parent?: unknown
  readonly signal: AbortSignal
}

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: Record<string, unknown>
  readonly output: {
    readonly schema: Record<string, unknown>
    render(args: unknown, value: unknown): TextBlock[]
  }
  execute(args: unknown, exec: ToolExecution): Promise<unknown>
  isConcurrencySafe?(args: unknown): boolean
}

export type PreToolDecision = { readonly kind: string; readonly reason?: string }

export interface ToolFailureResult {
  readonly content: TextBlock[]
  readonly isError: true
  readonly error: { readonly message: string; readonly info?: { readonly name: string; readonly code: string } }
}

export interface CommandInvocation {
  readonly agent: Agent
  readonly rawInput: string
  readonly signal: AbortSignal
}

export type CommandResult =
  | { readonly kind: 'success'; readonly text?: string }
  | { readonly kind: 'error'; readonly text: string }

export interface CommandDefinition {
  readonly name: string
  readonly description: string
  readonly input?: { readonly hint: string }
  handler(invocation: CommandInvocation): CommandResult | Promise<CommandResult>
}

export interface SubprocessHandle {
  readonly pid: number
  readonly stdin: NodeJS.WritableStream | undefined
  readonly stdout: NodeJS.ReadableStream | undefined
  readonly collected: { readonly stderr?: { readFrom(from: number): { readonly text: string } } }
  readonly done: Promise<{ readonly exitCode: number | null; readonly signal: string | null }>
  terminate(): void
}

export interface SubprocessService {
  spawn(spec: {
    argv: readonly string[]
    cwd: string
    stdio: { stdin: 'pipe'; stdout: 'pipe'; stderr: { maxBytes: number } }
    graceMs: number
    env?: Record<string, string | undefined>
  }): SubprocessHandle
  resolveExecutable(command: string): Promise<string>
}

export interface SessionStore {
  get(id: string): Session | undefined
  list(): Session[]
  flush(session: Session): Promise<boolean>
  fork(source: Session, boundary?: number, childId?: string): Session
  create(
    id: string | undefined,
    options: { meta: { cwd?: string; parentSession: string; seedLength: number } },
  ): Session
}

export interface UserQuestions {
  ask(request: {
    questions: {
      id: string
      question: string
      detail?: string
      header?: string
      options: { label: string; description?: string }[]
    }[]
    agent?: Agent
    signal?: AbortSignal
  }): Promise<{ answers: { id: string; selected: string[]; custom?: string }[] }>
}

export interface Approval {
  request(request: {
    agent: Agent
    toolName: string
    callId?: string
    reason?: string
    signal?: AbortSignal
  }): Promise<string>
}

export interface Llm {
  stream(options: Record<string, unknown>): AsyncIterable<unknown>
}

export interface SystemPrompt {
  section(section: { name: string; order: number; text: string }): unknown
}

export interface SessionProjections {
  register(unit: {
    key: string
    schema: unknown
    init(): unknown
    apply(state: unknown, event: SessionEvent): unknown
    view(state: unknown): unknown
    stateVersion: number
  }): unknown
}

export interface SessionPersistence {
  /** The stored session, or nothing. Writes nothing. */
  inspect(id: string): Promise<unknown>
}

export interface Logger {
  info(message: string): void
  warn(message: string): void
}

/** Services by name, as the plugin asks for them. */
export interface Services {
  subprocess: SubprocessService
  sessions: SessionStore
  tools: { register(tool: ToolDefinition): unknown }
  commands: { register(command: CommandDefinition): unknown }
  agents: { readonly list?: () => Iterable<Agent> }
  userQuestions: UserQuestions
  approval: Approval
  llm: Llm
  systemPrompt: SystemPrompt
  sessionProjections: SessionProjections
  sessionPersistence: SessionPersistence
}

export interface Context extends Pick<Services, 'subprocess' | 'sessions' | 'tools'> {
  get(name: string): unknown
  inject(names: readonly string[], callback: (ctx: Context & Services) => void): unknown
  on(event: string, listener: (...args: never[]) => unknown, options?: { prepend?: boolean }): unknown
  effect(setup: () => () => unknown, label?: string): unknown
  provide(name: string, value: unknown): unknown
  readonly logger: Logger
}

/** An optional service, or nothing where the profile has none. */
export function service<K extends keyof Services>(ctx: Context, name: K): Services[K] | undefined {
  return ctx.get(name) as Services[K] | undefined
}

/** The events of a live session, under either name. */
export function eventsOf(session: Session): readonly SessionEvent[] {
  return session.events ?? session.snapshotEvents?.() ?? []
}

/** A message of ours for the model, in the host's vocabulary: nothing that its reader does not know. */
export function pluginMessage(text: string, plugin = 'rwd'): UserMessage {
  const message: UserMessage = { id: crypto.randomUUID(), role: 'user', content: [{ type: 'text', text }], source: { kind: 'plugin', plugin } }
  return Object.freeze(message)
}
