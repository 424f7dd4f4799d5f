// Checked, never run: what the plugin says of its host (src/host.ts) against the types of the real one. Where a release
// of the host changes one of these shapes, this file no longer compiles.
import type { Agent as RealAgent } from '@deepseek-ai/dsh-agent'
import type { CommandRuntime } from '@deepseek-ai/dsh-commands'
import type LlmService from '@deepseek-ai/dsh-llm'
import type { Session as RealSession, SessionStore as RealStore } from '@deepseek-ai/dsh-session'
import type { SubprocessRuntime } from '@deepseek-ai/dsh-subprocess'
import type { SystemPrompt as RealPrompt } from '@deepseek-ai/dsh-system-prompt'
import type { PreToolDecision as RealDecision, ToolExecution as RealExecution, ToolExecutionFailure, ToolRuntime } from '@deepseek-ai/dsh-tools'
import type { ApprovalService } from '@deepseek-ai/dsh-user-approval'
import type { UserQuestionService } from '@deepseek-ai/dsh-user-questions'

import type * as ours from '../src/host.ts'

declare function has<T>(value: T): void
declare const real: {
  agent: RealAgent
  session: RealSession
  store: RealStore
  subprocess: SubprocessRuntime
  prompt: RealPrompt
  execution: RealExecution
  decision: RealDecision
  approval: ApprovalService
  questions: UserQuestionService
  llm: LlmService
}

has<Pick<ours.Session, 'id' | 'header' | 'seq'>>(real.session)
has<Pick<ours.SessionStore, 'flush'>>({ flush: session => real.store.flush(session as unknown as RealSession) })
has<Pick<ours.SubprocessService, 'resolveExecutable'>>(real.subprocess)
has<ours.SubprocessService>(real.subprocess as Pick<SubprocessRuntime, 'resolveExecutable' | 'spawn'> as ours.SubprocessService)
has<ours.PreToolDecision>(real.decision)
has<ours.Approval>(real.approval as unknown as ours.Approval)
has<Pick<ours.ToolExecution, 'callId' | 'name' | 'arguments' | 'signal'>>(real.execution)
has<ours.SystemPrompt>(real.prompt)

// What we give to the host.
declare const given: { tool: ours.ToolDefinition; command: ours.CommandDefinition; message: ours.UserMessage; failure: ours.ToolFailureResult }
has<Parameters<CommandRuntime['register']>[0]['name']>(given.command.name)
has<Parameters<ToolRuntime['register']>[0]['parameters']>(given.tool.parameters)
has<Parameters<ToolRuntime['register']>[0]['output']['schema']>(given.tool.output.schema)
has<Parameters<RealAgent['inject']>[0]['content'][number]>(given.message.content[0] as ours.TextBlock)
has<ToolExecutionFailure['content']>(given.failure.content)
has<Parameters<UserQuestionService['ask']>[0]['questions']>([{ id: '', question: '', detail: '', header: '', options: [{ label: '' }] }])
has<keyof LlmService>('stream')
has<keyof LlmService>('resolveModelInfo')
