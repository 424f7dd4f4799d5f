// OpenAI chat completions, as opencode speaks it to a provider of its own settings.

const textOf = content =>
  typeof content === 'string' ? content : (content ?? []).map(part => part.text ?? '').join('')

export const tools = body => body.tools ?? []

export function read(body) {
  const talk = []
  for (const message of body.messages ?? []) {
    if (message.role === 'tool') {
      talk.push({ result: textOf(message.content) })
      continue
    }
    const parts = Array.isArray(message.content) ? message.content : [{ text: message.content }]
    for (const { text } of parts) if (text) talk.push({ role: message.role, text })
    for (const call of message.tool_calls ?? [])
      talk.push({ call: call.function.name, input: JSON.parse(call.function.arguments || '{}') })
  }
  return talk
}

function toolCall([tool, input], index, root, fresh) {
  const [name, args] = {
    write: () => ['write', { filePath: `${root}/${input.path}`, content: input.content }],
    edit: () => ['edit', { filePath: `${root}/${input.path}`, oldString: input.old, newString: input.new }],
    bash: () => ['bash', { command: input.command, description: 'As the script says' }],
  }[tool]()
  return { index, id: fresh('call'), type: 'function', function: { name, arguments: JSON.stringify(args) } }
}

export function answer({ answer, body, root, fresh }) {
  const calls = answer.calls.map((call, index) => toolCall(call, index, root, fresh))
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop'
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
  const base = { id: fresh('chatcmpl'), created: 1, model: body.model }
  if (!body.stream) {
    const message = { role: 'assistant', content: answer.say, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
    return { json: { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage } }
  }
  const chunk = (delta, finish_reason = null) => ['', { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] }]
  const events = [chunk({ role: 'assistant', content: answer.say })]
  for (const call of calls) events.push(chunk({ tool_calls: [call] }))
  const end = chunk({}, finish_reason)
  end[1].usage = usage
  events.push(end, ['', '[DONE]'])
  return { events }
}
